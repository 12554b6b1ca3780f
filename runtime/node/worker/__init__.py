"""The worker process: group membership, log follower, task runner and janitor."""
