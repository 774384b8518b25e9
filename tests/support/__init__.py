"""What several tests share: small logs, a real daemon, checks over a whole tree."""
