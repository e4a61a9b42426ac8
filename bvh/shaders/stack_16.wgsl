// Fills the $stack slot of traverse.wgsl: entries of a lane's stack.
const STACK_SIZE: u32 = 16u;
