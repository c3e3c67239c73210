"""Write the 64 pixels of each of scikit-learn's 1,797 digits as features, beside this file."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

pixels, digits = load_digits(return_X_y=True)
# pixels are whole numbers up to 16, which float16 holds exactly
np.savez(
    Path(__file__).with_name("features.npz"), embeddings=pixels.astype("float16"), labels=digits
)
