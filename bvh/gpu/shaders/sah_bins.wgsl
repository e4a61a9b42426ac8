// A node's bins in workgroup memory, and the cut after each of them, a lane a cut. Who imports this
// declares `bins` and runs workgroups of LANES.

const LANES = 128u; // at least a lane a bin of each axis

var<workgroup> bin: array<u32, NODE_BIN_WORDS>;

struct Cut {
    left: OrderedBox,
    right: OrderedBox,
    left_count: u32,
}

// Fetches the bins of a slot of the level's list and leaves empty ones for the next level.
fn take_bins(slot: u32, lane: u32) {
    for (var k = lane; k < NODE_BIN_WORDS; k += LANES) {
        let at = slot * NODE_BIN_WORDS + k;
        bin[k] = bins[at];
        bins[at] = select(0u, 0xffffffffu, k % BIN_WORDS < 3u);
    }
}

fn load_bin(index: u32) -> OrderedBox {
    let at = index * BIN_WORDS;
    return OrderedBox(vec3u(bin[at], bin[at + 1u], bin[at + 2u]),
        vec3u(bin[at + 3u], bin[at + 4u], bin[at + 5u]));
}

// Lanes are bins, axis by axis; after a barrier.
fn cut_after(lane: u32) -> Cut {
    var cut = Cut(no_box(), no_box(), 0u);
    let base = lane / BINS * BINS;
    if (lane < 3u * BINS) {
        for (var k = 0u; k < BINS; k += 1u) {
            let box = load_bin(base + k);
            if (base + k <= lane) {
                cut.left = join(cut.left, box);
                cut.left_count += bin[(base + k) * BIN_WORDS + 6u];
            } else {
                cut.right = join(cut.right, box);
            }
        }
    }
    return cut;
}
