#include "api/statistics.h"

#include <string>

namespace nb = nanobind;

namespace movie {
namespace {

void put(nb::dict& dict, const std::string& key, std::int64_t value) { dict[nb::cast(key.c_str())] = value; }

void put(nb::dict& dict, const std::string& key, const Stat& stat) {
    put(dict, key + ".current", stat.current);
    put(dict, key + ".peak", stat.peak);
    put(dict, key + ".allocated", stat.allocated);
    put(dict, key + ".freed", stat.freed);
}

void put(nb::dict& dict, const std::string& key, const StatByKind& stat) {
    put(dict, key + ".all", stat[PoolKind::all]);
    put(dict, key + ".small_pool", stat[PoolKind::small]);
    put(dict, key + ".large_pool", stat[PoolKind::large]);
}

}  // namespace

nb::dict to_dict(const Statistics& statistics) {
    nb::dict dict;
    put(dict, "allocation", statistics.allocation);
    put(dict, "segment", statistics.segment);
    put(dict, "active", statistics.active);
    put(dict, "inactive_split", statistics.inactive_split);
    put(dict, "allocated_bytes", statistics.allocated_bytes);
    put(dict, "reserved_bytes", statistics.reserved_bytes);
    put(dict, "active_bytes", statistics.active_bytes);
    put(dict, "inactive_split_bytes", statistics.inactive_split_bytes);
    put(dict, "requested_bytes", statistics.requested_bytes);
    put(dict, "oversize_allocations", statistics.oversize_allocations);
    put(dict, "oversize_segments", statistics.oversize_segments);
    put(dict, "max_split_size", statistics.max_split_size);
    put(dict, "num_alloc_retries", statistics.num_alloc_retries);
    put(dict, "num_ooms", statistics.num_ooms);
    put(dict, "num_sync_all_streams", statistics.num_sync_all_streams);
    put(dict, "num_device_alloc", statistics.num_device_alloc);
    put(dict, "num_device_free", statistics.num_device_free);
    return dict;
}

nb::dict to_dict(const Unusable& unusable) {
    nb::dict dict;
    dict["none"] = unusable.none;
    dict["hard"] = unusable.hard;
    dict["soft"] = unusable.soft;
    dict["stream"] = unusable.stream;
    dict["pool"] = unusable.pool;
    dict["rounding"] = unusable.rounding;
    return dict;
}

nb::dict to_dict(const ViewCounters& views) {
    nb::dict dict;
    dict["created"] = views.created;
    dict["edited"] = views.edited;
    dict["reused"] = views.reused;
    dict["evicted"] = views.evicted;
    return dict;
}

}  // namespace movie
