"""Benchmarks: each module measures one thing and defines `figures`. `make bench NAME=startup` runs one, `make bench` all."""
