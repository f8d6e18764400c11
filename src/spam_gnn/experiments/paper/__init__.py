"""The paper's evidence, one study per module."""
