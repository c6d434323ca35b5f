"""The contract between actions and plugins: hooks, sessions, statements, placing."""
