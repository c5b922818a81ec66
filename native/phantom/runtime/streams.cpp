// Streams, events and host functions of the runtime.
#include "phantom/device/call.h"

using namespace movie::phantom;

PHANTOM_API int cudaStreamCreateWithPriority(void** out, unsigned flags, int priority) {
    return runtime_call("cudaStreamCreate", Needs::context, [&](Machine& machine, Lock&) {
        if (out == nullptr || flags > 1) return kInvalidValue;
        *out = machine.create_stream(flags, priority < -5 ? -5 : priority > 0 ? 0 : priority);
        return kSuccess;
    });
}
PHANTOM_API int cudaStreamCreateWithFlags(void** out, unsigned flags) {
    return cudaStreamCreateWithPriority(out, flags, 0);
}
PHANTOM_API int cudaStreamCreate(void** out) { return cudaStreamCreateWithPriority(out, 0, 0); }

namespace {

// Functions of one stream.
template <class Body>
int with_stream(const char* name, void* handle, Body&& body) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock& lock) -> int {
        Stream* stream = machine.stream(handle);
        if (stream == nullptr) return kInvalidHandle;
        return body(machine, *stream, lock);
    });
}

// Asking about work that is only recorded breaks the recording.
int forbid_captured(Stream& stream) {
    if (!stream.capture) return kSuccess;
    stream.capture->invalid = true;
    return kCaptureUnsupported;
}

}  // namespace

PHANTOM_API int cudaStreamDestroy(void* handle) {
    return with_stream("cudaStreamDestroy", handle, [](Machine& machine, Stream& stream, Lock&) {
        if (stream.legacy) return kInvalidHandle;
        machine.destroy_stream(&stream);
        return kSuccess;
    });
}

PHANTOM_API int cudaStreamGetPriority(void* handle, int* priority) {
    return with_stream("cudaStreamGetPriority", handle, [&](Machine&, Stream& stream, Lock&) {
        *priority = stream.priority;
        return kSuccess;
    });
}

PHANTOM_API int cudaStreamGetFlags(void* handle, unsigned* flags) {
    return with_stream("cudaStreamGetFlags", handle, [&](Machine&, Stream& stream, Lock&) {
        *flags = stream.flags;
        return kSuccess;
    });
}

PHANTOM_API int cudaStreamGetId(void* handle, unsigned long long* id) {
    return with_stream("cudaStreamGetId", handle, [&](Machine&, Stream& stream, Lock&) {
        *id = stream.id;
        return kSuccess;
    });
}

PHANTOM_API int cudaStreamGetDevice(void* handle, int* device) {
    return with_stream("cudaStreamGetDevice", handle, [&](Machine&, Stream& stream, Lock&) {
        *device = stream.device;
        return kSuccess;
    });
}

PHANTOM_API int cudaStreamSynchronize(void* handle) {
    return with_stream("cudaStreamSynchronize", handle, [](Machine& machine, Stream& stream, Lock& lock) -> int {
        if (const int code = forbid_captured(stream); code != kSuccess) return code;
        if (const int code = machine.check_enqueue(stream); code != kSuccess) return code;
        machine.charge(stream.device, Call::synchronize);
        machine.wait_until(machine.tail(stream), lock);
        return machine.broken;
    });
}

PHANTOM_API int cudaStreamQuery(void* handle) {
    return with_stream("cudaStreamQuery", handle, [](Machine& machine, Stream& stream, Lock&) -> int {
        if (const int code = forbid_captured(stream); code != kSuccess) return code;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        return machine.late.poll(machine.tail(stream), stream.polls, stream.polled_at) ? machine.broken : kNotReady;
    });
}

PHANTOM_API int cudaStreamWaitEvent(void* handle, void* event_handle, unsigned) {
    return with_stream("cudaStreamWaitEvent", handle, [&](Machine& machine, Stream& stream, Lock&) {
        Event* event = machine.event(event_handle);
        if (event == nullptr) return static_cast<int>(kInvalidHandle);
        machine.charge(stream.device, Call::stream_wait);
        return machine.wait_event(stream, *event);
    });
}

PHANTOM_API int cudaLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
    return with_stream("cudaLaunchHostFunc", handle, [&](Machine& machine, Stream& stream, Lock&) {
        return machine.host_function(stream, [function, data] { function(data); });
    });
}

PHANTOM_API int cudaStreamAddCallback(void* handle, void (*function)(void*, int, void*), void* data, unsigned) {
    return with_stream("cudaStreamAddCallback", handle, [&](Machine& machine, Stream& stream, Lock&) -> int {
        if (stream.capture) return forbid_captured(stream);
        return machine.host_function(stream, [=] { function(handle, kSuccess, data); });
    });
}

// --- events ----------------------------------------------------------------------------------------------------------

PHANTOM_API int cudaEventCreateWithFlags(void** out, unsigned flags) {
    return runtime_call("cudaEventCreate", Needs::context, [&](Machine& machine, Lock&) {
        if (out == nullptr) return kInvalidValue;
        *out = machine.create_event(flags);
        return kSuccess;
    });
}
PHANTOM_API int cudaEventCreate(void** out) { return cudaEventCreateWithFlags(out, 0); }

namespace {
template <class Body>
int with_event(const char* name, void* handle, Body&& body) {
    return runtime_call(name, Needs::context, [&](Machine& machine, Lock& lock) -> int {
        Event* event = machine.event(handle);
        if (event == nullptr) return kInvalidHandle;
        return body(machine, *event, lock);
    });
}

int forbid_captured(Event& event) {
    if (!event.capture) return kSuccess;
    event.capture->invalid = true;
    return kCapturedEvent;
}
}  // namespace

PHANTOM_API int cudaEventDestroy(void* handle) {
    return with_event("cudaEventDestroy", handle, [](Machine& machine, Event& event, Lock&) {
        machine.destroy_event(&event);
        return kSuccess;
    });
}

PHANTOM_API int cudaEventRecordWithFlags(void* handle, void* stream_handle, unsigned) {
    return with_event("cudaEventRecord", handle, [&](Machine& machine, Event& event, Lock&) -> int {
        Stream* stream = machine.stream(stream_handle);
        if (stream == nullptr || stream->device != event.device) return kInvalidHandle;
        machine.charge(event.device, Call::event_record);
        return machine.record(event, *stream);
    });
}
PHANTOM_API int cudaEventRecord(void* event, void* stream) { return cudaEventRecordWithFlags(event, stream, 0); }

PHANTOM_API int cudaEventQuery(void* handle) {
    return with_event("cudaEventQuery", handle, [](Machine& machine, Event& event, Lock&) -> int {
        if (const int code = forbid_captured(event); code != kSuccess) return code;
        if (const int code = machine.forbid_unsafe(); code != kSuccess) return code;
        machine.charge(event.device, Call::event_query);
        if (!event.recorded) return kSuccess;
        return machine.late.poll(event.place, event.polls, event.polled_at) ? machine.broken : kNotReady;
    });
}

PHANTOM_API int cudaEventSynchronize(void* handle) {
    return with_event("cudaEventSynchronize", handle, [](Machine& machine, Event& event, Lock& lock) -> int {
        if (const int code = forbid_captured(event); code != kSuccess) return code;
        machine.charge(event.device, Call::event_synchronize);
        if (event.recorded) machine.wait_until(event.place, lock);
        return machine.broken;
    });
}

namespace {
// A launch of the virtual clock counts as ten microseconds.
constexpr float kMillisecondsPerTick = 0.01F;

int elapsed(float* milliseconds, void* begin, void* end) {
    return runtime_call("cudaEventElapsedTime", Needs::context, [&](Machine& machine, Lock&) -> int {
        Event* first = machine.event(begin);
        Event* last = machine.event(end);
        if (first == nullptr || last == nullptr || !first->recorded || !last->recorded) return kInvalidHandle;
        if (((first->flags | last->flags) & 2) != 0) return kInvalidHandle;  // made without timing
        if (first->capture || last->capture) return kCapturedEvent;
        if (!machine.late.reached(first->place) || !machine.late.reached(last->place)) return kNotReady;
        const auto ticks = static_cast<std::int64_t>(last->place.due - first->place.due);
        *milliseconds = static_cast<float>(ticks) * kMillisecondsPerTick;
        return kSuccess;
    });
}
}  // namespace

PHANTOM_API int cudaEventElapsedTime(float* milliseconds, void* begin, void* end) {
    return elapsed(milliseconds, begin, end);
}
PHANTOM_API int cudaEventElapsedTime_v2(float* milliseconds, void* begin, void* end) {
    return elapsed(milliseconds, begin, end);
}
