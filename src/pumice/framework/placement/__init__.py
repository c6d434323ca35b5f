"""Which node: classes of equal pods, the kernel behind them, and the placing of jobs."""
