// Lanes of a workgroup that takes a whole segment: many, where they run at once.

const LANES = 256u;
