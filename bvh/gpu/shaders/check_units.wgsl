// One lane a 64-byte unit of a BLAS container: what of its node is wrong? See bvh/gpu/validate.py.

#import bvh.gpu.validate
#import bvh.layout

@group(0) @binding(0) var<uniform> parameters: CheckParameters;
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read> parent_links: array<u32>;
@group(0) @binding(3) var<storage, read_write> uses: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> findings: array<atomic<u32>>;

struct Bounds {
    low: vec3f,
    high: vec3f,
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

fn real(at: u32) -> f32 {
    return bitcast<f32>(word(at));
}

fn slot_bounds(unit: u32, half: bool, slot: u32) -> Bounds {
    if (half) {
        let at = unit * UNIT_WORDS + BOX_BOUNDS_WORD + slot * BOX_FP16_CHILD_WORDS;
        let a = unpack2x16float(word(at));
        let b = unpack2x16float(word(at + 1u));
        let c = unpack2x16float(word(at + 2u));
        return Bounds(vec3f(a, b.x), vec3f(b.y, c));
    }
    let at = unit * UNIT_WORDS + BOX_BOUNDS_WORD + slot * BOX_FP32_CHILD_WORDS;
    return Bounds(vec3f(real(at), real(at + 1u), real(at + 2u)),
        vec3f(real(at + 3u), real(at + 4u), real(at + 5u)));
}

// By bits: a compiler may take every number for one.
fn is_number(v: vec3f) -> bool {
    return all((bitcast<vec3u>(v) & vec3u(0x7fffffffu)) <= vec3u(0x7f800000u));
}

fn encloses(outer: Bounds, inner: Bounds) -> bool {
    return is_number(outer.low) && is_number(outer.high) && all(outer.low <= inner.low) &&
        all(outer.high >= inner.high);
}

fn vertex(unit: u32, slot: u32) -> vec3f {
    let at = unit * UNIT_WORDS + 3u * slot;
    return vec3f(real(at), real(at + 1u), real(at + 2u));
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
    var own = Bounds(vertex(block, 0u), vertex(block, 0u));
    var numbers = is_number(own.low);
    for (var slot = 1u; slot < min(3u + kind, 5u); slot += 1u) {
        numbers = numbers && is_number(vertex(block, slot));
        own.low = min(own.low, vertex(block, slot));
        own.high = max(own.high, vertex(block, slot));
    }
    let at = HEADER_BOUNDS_WORD;
    let whole = Bounds(vec3f(real(at), real(at + 1u), real(at + 2u)),
        vec3f(real(at + 3u), real(at + 4u), real(at + 5u)));
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
            own = Bounds(max(own.low, bounds.low), min(own.high, bounds.high));
            let met = is_number(bounds.low) && is_number(bounds.high) && all(own.low <= own.high);
            if (!met) {
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
