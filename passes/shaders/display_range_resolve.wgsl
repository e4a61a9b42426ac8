// Turns what was gathered into a range: of depths from the nearest to the farthest; of counts from
// 0 to the end of the bin below which 999 of 1,000 pixels lie, so that single pixels do not make
// the rest dark, but if that is 0 to the largest, and 1 at least; of differences as far on both sides
// of 0. One workgroup.
#import passes.display_records

@group(0) @binding(0) var<uniform> display: DisplayUniforms;
@group(0) @binding(1) var<storage, read_write> display_range: DisplayRange;

override DEPTH: bool = false;

const LANES: u32 = 64u;
const BINS_PER_LANE: u32 = BINS / LANES;

var<workgroup> sums: array<u32, LANES>;

// The largest value of a bin.
fn bin_end(bin: u32) -> u32 {
    if (bin < (1u << BIN_BITS)) { return bin; }
    let octave = (bin >> BIN_BITS) - 1u;
    let first = (bin & ((1u << BIN_BITS) - 1u)) + (1u << BIN_BITS);
    return (first << octave) + ((1u << octave) - 1u);
}

fn store_counts(high: u32) {
    display_range.high = f32(high);
    display_range.low = select(0.0, -f32(high), display.difference != 0u);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    let begin = lane * BINS_PER_LANE;
    var sum = 0u;
    for (var i = 0u; i < BINS_PER_LANE; i += 1u) { sum += display_range.histogram[begin + i]; }
    sums[lane] = sum;
    workgroupBarrier();
    let values = display_range.values;
    if (DEPTH) {
        if (lane == 0u && values > 0u) {
            display_range.low = bitcast<f32>(~display_range.least_inverted);
            display_range.high = bitcast<f32>(display_range.most);
        }
        return;
    }
    if (values == 0u) {
        if (lane == 0u) { store_counts(1u); }
        return;
    }
    let wanted = values - values / 1000u;
    var below = 0u;
    for (var i = 0u; i < lane; i += 1u) { below += sums[i]; }
    // The wanted pixel is in the bins of one lane.
    if (below >= wanted || wanted > below + sum) { return; }
    var bin = begin;
    loop {
        below += display_range.histogram[bin];
        if (below >= wanted) { break; }
        bin += 1u;
    }
    let most = display_range.most;
    store_counts(max(1u, select(min(bin_end(bin), most), most, bin == 0u)));
}
