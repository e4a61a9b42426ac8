// A lane's stack. Depth-first traversal of the scenes measured so far needed at most 36 entries.
const STACK_SIZE: u32 = 64u;
