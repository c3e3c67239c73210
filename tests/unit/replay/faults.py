"""The planted faults: cause -> its sizes, each (fault of the loop, sections of the recipe)."""

from torch.optim import SGD

ALL = ("smooth_ap", "proxy_anchor", "cosine_contrastive")
WARM = {"schedule": {"warmup_epochs": 1.0}}
NORMS = {"model": {"freeze_batch_norm": False}}
HALF = {"input": {"mean": [0.5], "std": [0.5]}}
CAFFE = {"mean": (128.0, 117.0, 104.0), "std": (1.0,), "white": 1.0, "order": [2, 1, 0]}
MOMENTUM = {"momentum": 0.9}
ADAMW = {"optimizer": {"name": "adamw"}}

# cause -> (losses that it applies to, its two sizes)
FAULTS = {
    "other_images_of_a_class": (ALL, [({"each": 3}, {}), ({"each": 6}, {})]),
    "other_batch_size": (ALL, [({"batch": 16}, {}), ({"batch": 32}, {})]),
    "last_batch_kept": (ALL, [({"last": 8}, {}), ({"last": 4}, {})]),
    "other_image_size": (
        ALL,
        [({}, {"input": {"image_size": 8}}), ({}, {"input": {"image_size": 32}})],
    ),
    "sampler_with_replacement": (ALL, [({"replacement": 0.2}, {}), ({"replacement": 1.0}, {})]),
    "channel_order": (
        ALL,
        [({"order": [2, 1, 0]}, {}), ({"order": [2, 1, 0], "white": 255.0}, {})],
    ),
    "range_255": (ALL, [({"white": 1.0}, {}), ({"white": 1.0, "seed": 1}, {})]),
    "pixels_255": (ALL, [({"white": 1.0, "mean": (0.0,), "std": (1.0,)}, {})]),
    "not_normalised": (ALL, [({"mean": (0.0,), "std": (1.0,)}, {})]),
    "half_half": (ALL, [({"mean": (0.5,), "std": (0.5,)}, {})]),
    "imagenet_normalisation": (ALL, [({}, HALF), ({}, {"input": {"mean": [0.4], "std": [0.2]}})]),
    "caffe_normalisation": (ALL, [(CAFFE, {}), (CAFFE, HALF)]),
    "other_normalisation": (ALL, [({"mean": (0.3, 0.3, 0.3), "std": (0.2, 0.2, 0.2)}, {})]),
    "batch_norms_not_frozen": (ALL, [({"norms": True}, {}), ({"norms": True, "seed": 1}, {})]),
    "batch_norms_frozen": (ALL, [({}, NORMS)]),
    "rows_not_normalised": (ALL, [({"raw": True}, {}), ({"length": 2.0, "raw": True}, {})]),
    "mean_for_sum": (ALL, [({"factor": 24.0}, {}), ({"factor": 0.5}, {})]),
    "self_pair_counted": (("smooth_ap",), [({"options": {"own": False}}, {})]),
    "labels_shifted": (("proxy_anchor",), [({"shift": 1}, {})]),
    "gradient_of_gathered_rows_lost": (
        ("smooth_ap", "cosine_contrastive"),
        [({"lost": "queries"}, {}), ({"lost": "rows"}, {})],
    ),
    "gradient_times_factor": (ALL, [({"backward": 2.0}, {}), ({"backward": 0.25}, {})]),
    "clipping": (ALL, [({"clip": 0.01}, {}), ({"clip": 0.1}, {})]),
    "rate_of_head": (ALL, [({"head": 5.0}, {}), ({"head": 0.5}, {})]),
    "rate_of_loss": (("proxy_anchor",), [({"proxies": 0.01}, {}), ({"proxies": 1.1}, {})]),
    "learning_rate": (ALL, [({"rate": 10.0}, {}), ({"rate": 0.9}, {})]),
    "warm_up_absent": (ALL, [({}, WARM), ({}, {"schedule": {"warmup_epochs": 0.4}})]),
    "other_optimizer": (ALL, [({"kind": SGD}, {}), ({"kind": SGD, "settings": MOMENTUM}, {})]),
    "decoupled_decay": (ALL, [({"decoupled": True}, {}), ({}, ADAMW)]),
    "weight_decay": (ALL, [({"decay": 0.0}, {}), ({"decay": 0.1}, {})]),
    "decay_of_loss": (("proxy_anchor",), [({"loss_decay": 0.0}, {}), ({"loss_decay": 0.02}, {})]),
    "loss_not_trained": (("proxy_anchor",), [({"untrained": True}, {})]),
}
TEMPERATURES = {
    "smooth_ap": [{"tau": 0.02}, {"tau": 0.011}],
    "proxy_anchor": [{"alpha": 16.0}, {"margin": 0.2}],
    "cosine_contrastive": [{"margin": 0.4}, {"margin": 0.7}],
}
