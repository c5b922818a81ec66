// numpy arrays as the columns of a trace, without copies.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <utility>

#include "replay/trace_view.h"

namespace movie {

template <class T>
using Column = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <class T>
std::span<const T> span_of(const Column<T>& column) {
    return {column.data(), column.shape(0)};
}

// Keeps the arrays alive as long as the view of them.
struct TraceColumns {
    Column<std::uint8_t> action;
    Column<std::int64_t> id, bytes, stream, pool;
    Column<std::uint64_t> address;
    Column<std::int64_t> start_bytes, start_stream, start_pool;
    Column<bool> start_pending;
    TraceView view;

    TraceColumns(Column<std::uint8_t> action_, Column<std::int64_t> id_, Column<std::int64_t> bytes_,
                 Column<std::int64_t> stream_, Column<std::int64_t> pool_, Column<std::uint64_t> address_,
                 Column<std::int64_t> start_bytes_, Column<std::int64_t> start_stream_,
                 Column<std::int64_t> start_pool_, Column<bool> start_pending_, std::int64_t ids,
                 bool completions_recorded)
        : action(std::move(action_)),
          id(std::move(id_)),
          bytes(std::move(bytes_)),
          stream(std::move(stream_)),
          pool(std::move(pool_)),
          address(std::move(address_)),
          start_bytes(std::move(start_bytes_)),
          start_stream(std::move(start_stream_)),
          start_pool(std::move(start_pool_)),
          start_pending(std::move(start_pending_)),
          view{.action = span_of(action),
               .id = span_of(id),
               .bytes = span_of(bytes),
               .stream = span_of(stream),
               .pool = span_of(pool),
               .address = span_of(address),
               .start_bytes = span_of(start_bytes),
               .start_stream = span_of(start_stream),
               .start_pool = span_of(start_pool),
               .start_pending = span_of(start_pending),
               .ids = ids,
               .completions_recorded = completions_recorded} {}
};

}  // namespace movie
