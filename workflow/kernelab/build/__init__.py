"""Build: compile a kernel for an architecture, and read what the machine code says, without a GPU.

`toolchain` finds compilers, `source` digests what they read, `compiler` runs them; `ptx`, `resources`,
`sass`, `loops`, `hot_loop` and `identity` read the result; `kernel` is the whole step. `cards` and
`occupancy` say what a build means on a card.
"""
