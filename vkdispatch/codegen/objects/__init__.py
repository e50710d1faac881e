"""What the body of a kernel holds besides variables: buffers, images, matrices, structures, arrays."""
