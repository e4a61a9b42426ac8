"""What each object cost: its part of every ray type's work, how those that deform were updated,
and what hits on it were shaded by.

Counts are by object, not by instance: all copies of a mesh share a row.
"""

from dataclasses import asdict

from passes.update_records import UPDATE_PASSES, own_update_ms
from treeline.cost_model import traversal_ms
from treeline.measure import Measurement, median
from treeline.report_row import Row, add, make_row, ratio

# Of neighbouring rays of a queue, by how many there are of them.
LANES = {32: "subgroup", 64: "workgroup"}
DECISIONS_SHOWN = 16  # of an object, the latest


def object_rows(measurement: Measurement) -> list[Row]:
    """What each object took of each ray type, the TLAS in a row of its own. `real_time` is an
    estimate: the traversal's time by the object's share of the nodes; the numbers that were counted
    are beside it (bvh/counters.py). Over the rows they add up to the ray type's."""
    counted = measurement.main.counted
    if counted is None:
        return []
    sums: dict[str, int] = {}
    for (_, ray_type), spent in counted.objects.items():
        sums[ray_type] = sums.get(ray_type, 0) + int(spent["nodes"])
    rows = []
    for (name, ray_type), spent in counted.objects.items():
        share = ratio(spent["nodes"], sums[ray_type])
        traverse = median([traversal_ms(f.passes, ray_type) for f in measurement.main.frames])
        row = make_row(f"object/{name}/{ray_type}", 1, (share or 0.0) * traverse)
        row["run"] = {"real_time": "model"}
        add(row, "counted", **spent, nodes_share=share)
        rows.append(row)
    return rows


def update_rows(measurement: Measurement) -> list[Row]:
    """What became of each object that deforms: its last update, and what its tree costs against
    when it was built. `real_time` is the last frame's pass that did it, where it did nothing else;
    null where several objects share the pass, whose time is not separate."""
    timed = measurement.main.frames[-1]
    records = measurement.main.updates
    rows = []
    for record in records:
        took = own_update_ms(records, record, timed.passes)
        row = make_row(f"update/{record.name}", 1, took)
        row["run"] = {"real_time": "timed"}
        alike = sum(other.action == record.action for other in records)
        add(row, "timed", pass_shared_by=alike if record.action in UPDATE_PASSES else 0)
        numbers = asdict(record)
        decisions, decided = numbers.pop("decisions"), numbers.pop("decided")
        del numbers["name"]
        for text in ("motion", "action", "reason"):
            row[text] = numbers.pop(text)
        add(row, "counted", visits=numbers.pop("visits"), visits_built=numbers.pop("visits_built"))
        add(row, "timed", **numbers)
        add(row, "timed", sah_growth=ratio(record.sah, record.sah_built))
        add(row, "counted", visits_growth=ratio(record.visits, record.visits_built))
        row["decisions"] = decisions[-DECISIONS_SHOWN:]
        row["decisions_left_out"] = decided - len(row["decisions"])
        rows.append(row)
    return rows


def hit_table_rows(measurement: Measurement) -> list[Row]:
    """The hit table (passes/hit_table.py): a row for each ray type, geometry class and material
    class, and one for each type whose hits are shaded, with how many different classes, materials
    and objects a hit's neighbours touch: a coarse table's hits read a class's record and a
    material's, a fine one's an object's."""
    table = measurement.main.hit_table
    if table is None:
        return []
    rows = []
    for item in table.classes:
        numbers = asdict(item)
        names = [numbers.pop(key) for key in ("ray_type", "geometry", "material")]
        row = make_row(f"hit_table/{'/'.join(names)}", 1, 0.0)
        row["run"] = {}
        add(row, "counted", hits=numbers.pop("hits"))
        add(row, "build", **numbers)
        rows.append(row)
    for ray_type in dict.fromkeys(item.ray_type for item in table.touched):
        row = make_row(f"hit_table/{ray_type}", 1, 0.0)
        row["run"] = {}
        for item in table.touched:
            if item.ray_type == ray_type:
                per = f"per_{LANES[item.lanes]}"
                numbers = {
                    f"classes_{per}": item.classes,
                    f"materials_{per}": item.materials,
                    f"objects_{per}": item.objects,
                }
                add(row, "counted", **numbers)
        rows.append(row)
    return rows
