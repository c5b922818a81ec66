"""Running replays and checks over traces."""
