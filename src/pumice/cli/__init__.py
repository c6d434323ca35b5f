"""The command `pumice`: one module for each noun, loaded only when it is called."""
