// __launch_bounds__ with or without its second argument, the number of blocks that must fit on one SM.
//
// Without it ptxas limits registers by its own idea of a good occupancy; with 1 it may use all that a block can
// have.
#pragma once

#if MIN_BLOCKS == 0
#define LAUNCH_BOUNDS(threads) __launch_bounds__(threads)
#else
#define LAUNCH_BOUNDS(threads) __launch_bounds__(threads, MIN_BLOCKS)
#endif
