"""Programs written for older systems, run as they are; the documentation's tables are made of them."""
