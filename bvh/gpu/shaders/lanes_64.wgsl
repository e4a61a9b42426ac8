// Lanes of a workgroup that takes a whole segment: few, where a driver runs them one after the other.

const LANES = 64u;
