"""What topics must be like, stated before the fit."""
