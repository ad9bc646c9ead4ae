"""Releases checked, attacked and measured."""
