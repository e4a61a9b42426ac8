"""Windows, cameras, lines in space and widgets: draws what it is handed, knows no pass by name."""
