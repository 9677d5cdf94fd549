"""The default hooks: what xlm does where no other plugin answers first."""
