#!/usr/bin/env bash
# The scheduler of the master's core at 5,000 agents and 100,000 queued trials (bench/schedule.c). No
# peer's scheduler runs without its daemons, so ours stands alone.
exec "${DET_BUILD:?}/bench/bench-schedule"
