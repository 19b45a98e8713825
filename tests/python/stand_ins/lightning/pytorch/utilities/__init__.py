import functools


def rank_zero_only(fn):
    """Does nothing on other ranks."""
    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        return fn(*args, **kwargs) if rank_zero_only.rank == 0 else None
    return wrapped


rank_zero_only.rank = 0
