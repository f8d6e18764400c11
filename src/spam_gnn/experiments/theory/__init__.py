"""The paper's theorems, each measured: a frozen finding, a figure of it, and a sentence that says whether the claim held."""
