"""The networks as estimators of scikit-learn."""
