"""CalibrationGen: draws the examples from which a model's activation ranges are measured."""
