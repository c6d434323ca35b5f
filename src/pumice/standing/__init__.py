"""What a scheduler need not decide again: a whole cycle, or the jobs that it refused."""
