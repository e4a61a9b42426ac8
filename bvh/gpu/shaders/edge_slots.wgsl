// The edges of a tile of 256 triangles in workgroup memory, and the lowest half-edge of each in
// either direction. Who imports this declares `triangles`.

#import "bvh/gpu/shaders/edge.wgsl"
#import "bvh/gpu/shaders/triangle_vertex.wgsl"

const SLOTS = 1024u; // for at most 768 edges

var<workgroup> edge_keys: array<atomic<u32>, 1024>; // 0: free
var<workgroup> lowest: array<atomic<u32>, 2048>; // half-edge of each direction

// Before a barrier.
fn clear_edge_slots(lane: u32) {
    for (var i = lane; i < SLOTS; i += 256u) {
        atomicStore(&edge_keys[i], 0u);
        atomicStore(&lowest[2u * i], NONE);
        atomicStore(&lowest[2u * i + 1u], NONE);
    }
}

// Which slot a key gets depends on who comes first, what the slot says of the key does not.
fn slot_of(key: u32) -> u32 {
    var slot = key % SLOTS;
    loop {
        let found = atomicCompareExchangeWeak(&edge_keys[slot], 0u, key);
        if (found.exchanged || found.old_value == key) { break; }
        if (found.old_value != 0u) { slot = (slot + 1u) % SLOTS; }
    }
    return slot;
}

// Places in `lowest` of a triangle's half-edges, which it enters there.
fn enter_edges(triangle: u32) -> array<u32, 3> {
    var own: array<u32, 3>;
    var hash: array<u32, 3>;
    for (var c = 0u; c < 3u; c += 1u) { hash[c] = hash_vertex(vertex(triangle, c)); }
    for (var c = 0u; c < 3u; c += 1u) {
        let start = hash[(c + 1u) % 3u];
        let end = hash[(c + 2u) % 3u];
        own[c] = 2u * slot_of(edge_key(start, end)) + select(0u, 1u, start > end);
        atomicMin(&lowest[own[c]], 3u * triangle + c);
    }
    return own;
}
