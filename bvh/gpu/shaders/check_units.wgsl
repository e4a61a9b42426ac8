// One lane a 64-byte unit of a BLAS container: what of its node is wrong? See bvh/gpu/validate.py.

#import bvh.gpu.validate
#import bvh.layout
#import "bvh/contract/shaders/float_bits.wgsl"

@group(0) @binding(0) var<uniform> parameters: CheckParameters;
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read> parent_links: array<u32>;
@group(0) @binding(3) var<storage, read_write> uses: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> findings: array<atomic<u32>>;

// As integers that order like the floats: a verdict must not depend on what a driver takes a
// denormal or a NaN for.
struct Bounds {
    low: vec4i, // w is 0
    high: vec4i,
    numbers: bool,
}

fn fault(kind: u32, unit: u32) {
    atomicAdd(&findings[2u * kind], 1u);
    atomicMin(&findings[2u * kind + 1u], unit);
}

fn tally(kind: u32, amount: u32) {
    atomicAdd(&findings[FIRST_TALLY + kind], amount);
}

// Words and links count from the container's first unit.
fn word(at: u32) -> u32 {
    return words[parameters.base_unit * UNIT_WORDS + at];
}

fn link(unit: u32) -> u32 {
    return parent_links[parameters.base_unit + unit];
}

fn bounds_of(low: vec3u, high: vec3u) -> Bounds {
    let a = vec4u(low, 0u);
    let b = vec4u(high, 0u);
    return Bounds(order4(a), order4(b), !any(is_nan4(a) | is_nan4(b)));
}

fn words_at(at: u32) -> vec3u {
    return vec3u(word(at), word(at + 1u), word(at + 2u));
}

fn slot_bounds(unit: u32, half: bool, slot: u32) -> Bounds {
    if (half) {
        let at = unit * UNIT_WORDS + BOX_BOUNDS_WORD + slot * BOX_FP16_CHILD_WORDS;
        let pairs = words_at(at);
        let low = half_to_float4(vec4u(pairs & vec3u(0xffffu), 0u));
        let high = half_to_float4(vec4u(pairs >> vec3u(16u), 0u));
        return bounds_of(vec3u(low.x, high.x, low.y), vec3u(high.y, low.z, high.z));
    }
    let at = unit * UNIT_WORDS + BOX_BOUNDS_WORD + slot * BOX_FP32_CHILD_WORDS;
    return bounds_of(words_at(at), words_at(at + 3u));
}

fn encloses(outer: Bounds, inner: Bounds) -> bool {
    return outer.numbers && all(outer.low <= inner.low) && all(outer.high >= inner.high);
}

fn vertex(unit: u32, slot: u32) -> Bounds {
    let corner = words_at(unit * UNIT_WORDS + 3u * slot);
    return bounds_of(corner, corner);
}

fn is_box(kind: u32) -> bool {
    return kind == NODE_BOX_FP16 || kind == NODE_BOX_FP32;
}

fn last_kind() -> u32 {
    return select(NODE_TRIANGLE_1, NODE_TRIANGLE_3, parameters.fan_unit != 0u);
}

// Behind the last leaf.
fn leaf_end() -> u32 {
    return select(parameters.units, parameters.fan_unit, parameters.fan_unit != 0u);
}

// First word of a block's row of ids, 0 where the table has none.
fn fan_row(block: u32) -> u32 {
    if (parameters.fan_unit == 0u) { return 0u; }
    let table = parameters.fan_unit * UNIT_WORDS;
    let size = parameters.units * UNIT_WORDS - table;
    let leaf = block - parameters.leaf_unit;
    let entry = leaf / FAN_GROUP_LEAVES * FAN_GROUP_WORDS;
    if (entry + 1u >= size) { return 0u; }
    let mask = word(table + entry);
    let first = word(table + entry + 1u);
    let bit = 1u << (leaf % FAN_GROUP_LEAVES);
    if ((mask & bit) == 0u || first >= size / FAN_ROW_WORDS) { return 0u; }
    let row = first + countOneBits(mask & (bit - 1u));
    return select(0u, table + row * FAN_ROW_WORDS, row < size / FAN_ROW_WORDS);
}

fn check_children(unit: u32, kind: u32) {
    let half = kind == NODE_BOX_FP16;
    tally(select(0u, 1u, half), 1u);
    if (!half && link(unit + 1u) != INVALID_POINTER) { fault(FAULT_OVERLAP, unit); }
    for (var slot = 0u; slot < BOX_WIDTH; slot += 1u) {
        let pointer = word(unit * UNIT_WORDS + slot);
        if (pointer == INVALID_POINTER) { continue; }
        let child = pointer >> 3u;
        let child_kind = pointer & 7u;
        // A node lies before all below it: no cycles.
        let placed = child > unit && child < leaf_end();
        if (!placed || (child < parameters.leaf_unit) != is_box(child_kind) ||
            (!is_box(child_kind) && child_kind > last_kind())) {
            fault(FAULT_POINTER, unit);
        } else if (link(child) != (unit << 3u | kind)) {
            fault(FAULT_LINK, child);
        }
    }
}

// The slot of node `parent` that points to `unit`: (its number, its pointer), or 4 where not one
// slot does.
fn slot_of(parent: u32, unit: u32) -> vec2u {
    var found = 0u;
    var result = vec2u(BOX_WIDTH, 0u);
    for (var slot = 0u; slot < BOX_WIDTH; slot += 1u) {
        let pointer = word(parent * UNIT_WORDS + slot);
        if (pointer != INVALID_POINTER && pointer >> 3u == unit) {
            found += 1u;
            result = vec2u(slot, pointer);
        }
    }
    return select(vec2u(BOX_WIDTH, 0u), result, found == 1u);
}

fn link_is_sound(unit: u32) -> bool {
    let above = link(unit);
    let parent = above >> 3u;
    return above != INVALID_POINTER && is_box(above & 7u) && parent >= 2u && parent < unit;
}

// Every box on the way to the root, and the header's, encloses the block's triangles; where blocks
// may be repeated, all boxes on the way and the block have something in common.
fn check_block(block: u32, kind: u32) {
    tally(2u, 1u);
    var own = vertex(block, 0u);
    for (var slot = 1u; slot < min(3u + kind, 5u); slot += 1u) {
        let corner = vertex(block, slot);
        own = Bounds(min(own.low, corner.low), max(own.high, corner.high), own.numbers && corner.numbers);
    }
    let numbers = own.numbers;
    let whole = bounds_of(words_at(HEADER_BOUNDS_WORD), words_at(HEADER_BOUNDS_WORD + 3u));
    if (!numbers) { fault(FAULT_BOX, block); } else if (!encloses(whole, own)) { fault(FAULT_BOX, 0u); }
    var unit = block;
    while (numbers && unit != 2u && link_is_sound(unit)) {
        let parent = link(unit) >> 3u;
        let slot = slot_of(parent, unit).x;
        if (slot == BOX_WIDTH) { break; } // the lane of that unit reports it
        let bounds = slot_bounds(parent, (link(unit) & 7u) == NODE_BOX_FP16, slot);
        if (parameters.most_uses == 1u) {
            if (!encloses(bounds, own)) { fault(FAULT_BOX, parent); }
        } else {
            own = Bounds(max(own.low, bounds.low), min(own.high, bounds.high), bounds.numbers);
            if (!own.numbers || any(own.low > own.high)) {
                fault(FAULT_BOX, parent);
                break;
            }
        }
        unit = parent;
    }
    let row = fan_row(block);
    let is_fan = kind >= NODE_TRIANGLE_2;
    var odd = min(row, 1u) != select(0u, 1u, is_fan);
    if (kind == NODE_TRIANGLE_2 && row != 0u && word(row + 3u) != INVALID_POINTER) { odd = true; }
    if (odd) { fault(FAULT_PRIMITIVE, block); }
    for (var k = 0u; k <= kind; k += 1u) {
        if (odd || parameters.most_uses == 1u) { tally(3u, 1u); }
        if (odd) { continue; }
        let primitive = word(select(block * UNIT_WORDS + TRIANGLE_PRIMITIVE_0_WORD, row, is_fan) + k);
        if (primitive >= arrayLength(&uses)) {
            fault(FAULT_PRIMITIVE, block);
        } else {
            let uses_before = atomicAdd(&uses[primitive], 1u);
            if (uses_before >= parameters.most_uses) { fault(FAULT_PRIMITIVE, block); }
            if (uses_before == 0u && parameters.most_uses > 1u) { tally(3u, 1u); }
        }
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(num_workgroups) groups: vec3u,
) {
    for (var unit = 2u + id.x; unit < parameters.units; unit += groups.x * 256u) {
        if (unit == 2u) {
            if (link(unit) != INVALID_POINTER) { fault(FAULT_LINK, unit); }
            check_children(unit, NODE_BOX_FP32);
            continue;
        }
        if (link(unit) == INVALID_POINTER) { continue; } // the tallies say whether too many are
        if (unit >= leaf_end()) {
            fault(FAULT_LINK, unit);
            continue;
        }
        if (!link_is_sound(unit)) {
            fault(FAULT_LINK, unit);
            continue;
        }
        let slot = slot_of(link(unit) >> 3u, unit);
        let kind = slot.y & 7u;
        if (slot.x == BOX_WIDTH) {
            fault(FAULT_LINK, unit);
        } else if (is_box(kind)) {
            check_children(unit, kind);
        } else if (kind <= last_kind()) { // else its parent reports the pointer
            check_block(unit, kind);
        }
    }
}
