"""Further findings of a trained model, by name: a module here with `measure(fitted) -> dict` is found by its name."""
