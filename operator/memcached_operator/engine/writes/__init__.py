"""Writes of children and pods, and the decisions about each: is it ours, is it current, who changed it?"""
