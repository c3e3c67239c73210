"""What is known of how far laboratories differ, from the papers' own numbers."""

from benchmark.published.laboratories import known_of_laboratories, repeated_settings


def test_two_papers_trained_four_settings():
    pairs = repeated_settings()["two_papers"]
    places = {(one.dataset, one.batch_size): {one.text, two.text} for one, two in pairs}
    assert places == {
        ("sop", 224): {"79.2", "81.2"},
        ("sop", 384): {"80.1", "81.45"},
        ("inaturalist", 224): {"65.9", "66.62"},
        ("inaturalist", 384): {"67.2", "67.39"},
    }
    assert all(one.source != two.source for one, two in pairs)


def test_one_paper_printed_settings_twice():
    pairs = repeated_settings()["one_paper"]
    assert len(pairs) == 24
    assert {"36.30", "35.76"} in ({one.text, two.text} for one, two in pairs)
    assert "root mean square 1.3, so at most 0.9 a laboratory" in known_of_laboratories()
