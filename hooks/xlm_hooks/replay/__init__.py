"""Published speeds, predicted again: how far the simulator is from other people's measurements."""
