"""What every subpackage needs and no user."""
