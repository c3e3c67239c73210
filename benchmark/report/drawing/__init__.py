"""What a figure is, the style that all figures share, and the drawing of panels."""
