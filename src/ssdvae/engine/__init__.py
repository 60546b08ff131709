"""Many processes behind one interface: a pool on this machine, or Ray."""
