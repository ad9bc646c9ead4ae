"""Two listeners: one for devices, one for those who run campaigns."""
