"""Kills, stops and restarts real processes under load, and audits what became of every job."""
