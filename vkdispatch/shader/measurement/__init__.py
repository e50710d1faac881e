"""What kernels cost and how exact they are: profiles, bandwidth, accuracy, tuning."""
