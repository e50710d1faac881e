"""What a transform will do, decided before a kernel is traced: splits, workgroups, memory."""
