// The functions of the graph interface.
#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "phantom/libraries/cudnn/backend/descriptor.h"
#include "phantom/libraries/cudnn/backend/engines.h"
#include "phantom/libraries/export.h"

using namespace movie::phantom::cudnn;

namespace {

// What a caller holds. The contents are shared with the descriptors that it was set into, so a caller may let go of its
// own.
struct Held {
    static constexpr unsigned kMark = 0x62446573;
    unsigned mark = kMark;
    Shared contents = std::make_shared<Descriptor>();
};

bool good(const Held* held) { return held && held->mark == Held::kMark; }

const Descriptor* graph_of_engine(const Descriptor* engine) {
    return engine ? engine->part(Name::engine_graph) : nullptr;
}

const Descriptor* engine_of(const Descriptor& descriptor) {
    if (descriptor.kind == Kind::engine_config) return descriptor.part(Name::config_engine);
    const auto* config = descriptor.part(Name::plan_config);
    return config ? config->part(Name::config_engine) : nullptr;
}

// What a descriptor must hold before it may be finalized.
bool complete(const Descriptor& descriptor) {
    switch (descriptor.kind) {
        case Kind::tensor: {
            const auto dimensions = descriptor.numbers(Name::tensor_dimensions).size();
            return dimensions && dimensions == descriptor.numbers(Name::tensor_strides).size();
        }
        case Kind::graph:
            return descriptor.part(Name::graph_operations);
        case Kind::heuristic:
            return descriptor.part(Name::heuristic_graph);
        case Kind::engine: {
            const auto index = descriptor.number(Name::engine_index, -1);
            return graph_of_engine(&descriptor) && index >= 0;
        }
        case Kind::engine_config:
        case Kind::plan:
            return graph_of_engine(engine_of(descriptor));
        default:
            return true;
    }
}

std::int64_t workspace_of(const Descriptor& descriptor) {
    const auto* engine = engine_of(descriptor);
    const auto* graph = graph_of_engine(engine);
    return graph ? workspace(*graph, engine->number(Name::engine_index, kFrugal)) : 0;
}

// Attributes that are not read back as they were set, but follow from the others.
std::optional<Attribute> derived(const Descriptor& descriptor, Name name) {
    const auto number = [](std::int64_t value) {
        Attribute attribute{ElementType::int64, std::vector<std::byte>(sizeof value), {}};
        std::memcpy(attribute.values.data(), &value, sizeof value);
        return attribute;
    };
    switch (name) {
        case Name::graph_engines:
            return number(kEngines);
        case Name::config_workspace:
        case Name::plan_workspace:
            return number(workspace_of(descriptor));
        case Name::config_shared_memory:
            return Attribute{ElementType::int32, std::vector<std::byte>(4), {}};
        case Name::plan_text: {
            const auto* engine = engine_of(descriptor);
            const auto index = engine ? engine->number(Name::engine_index, 0) : 0;
            const auto text = "{\"engine\": " + std::to_string(index) + ", \"device\": \"phantom\"}";
            const auto* first = reinterpret_cast<const std::byte*>(text.c_str());
            return Attribute{ElementType::character, {first, first + text.size() + 1}, {}};
        }
        case Name::heuristic_results: {
            Attribute attribute{ElementType::descriptor, {}, {}};
            const auto* graph = descriptor.find(Name::heuristic_graph);
            if (!graph) return attribute;
            for (const auto index : proposed(descriptor.number(Name::heuristic_mode, 0))) {
                auto engine = std::make_shared<Descriptor>(Descriptor{Kind::engine, true, {}});
                engine->attributes[Name::engine_graph] = *graph;
                engine->attributes[Name::engine_index] = number(index);
                auto config = std::make_shared<Descriptor>(Descriptor{Kind::engine_config, true, {}});
                config->attributes[Name::config_engine] = {ElementType::descriptor, {}, {engine}};
                attribute.descriptors.push_back(config);
            }
            return attribute;
        }
        // The engines have nothing to choose and nothing to warn of.
        case Name::config_intermediates:
        case Name::config_knobs:
        case Name::engine_knobs:
        case Name::engine_numerics:
        case Name::engine_layouts:
        case Name::engine_behaviour:
            return Attribute{};
        default:
            return std::nullopt;
    }
}

Status read(const Attribute& attribute, std::int64_t room, std::int64_t* count, void* elements) {
    const bool descriptors = attribute.type == ElementType::descriptor;
    const auto size = size_of(attribute.type);
    const auto total = descriptors ? attribute.descriptors.size() : attribute.values.size() / size;
    if (count) *count = static_cast<std::int64_t>(total);
    if (!elements || room <= 0) return kSuccess;
    const auto copied = std::min(total, static_cast<std::size_t>(room));
    if (count) *count = static_cast<std::int64_t>(copied);
    if (!descriptors) {
        std::memcpy(elements, attribute.values.data(), copied * size);
        return kSuccess;
    }
    // The caller has made the descriptors; they get the contents.
    auto** targets = static_cast<Held**>(elements);
    for (std::size_t i = 0; i < copied; ++i) {
        if (!good(targets[i]) || targets[i]->contents->kind != attribute.descriptors[i]->kind) return kBadParameter;
        targets[i]->contents = attribute.descriptors[i];
    }
    return kSuccess;
}

}  // namespace

PHANTOM_EXPORT int cudnnBackendCreateDescriptor(int kind, Held** made) {
    if (!made || kind < 0) return kBadParameter;
    *made = new (std::nothrow) Held;
    if (!*made) return kOutOfHostMemory;
    (*made)->contents->kind = static_cast<Kind>(kind);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnBackendDestroyDescriptor(Held* held) {
    if (!good(held)) return kBadParameter;
    held->mark = 0;
    delete held;
    return kSuccess;
}

PHANTOM_EXPORT int cudnnBackendSetAttribute(Held* held, int name, int type, std::int64_t count, const void* elements) {
    if (!good(held) || count < 0 || (count && !elements)) return kBadParameter;
    if (held->contents->finalized) return kBadParameter;
    Attribute attribute{static_cast<ElementType>(type), {}, {}};
    if (attribute.type == ElementType::descriptor) {
        auto* const* parts = static_cast<Held* const*>(elements);
        for (std::int64_t i = 0; i < count; ++i) {
            if (!good(parts[i])) return kBadParameter;
            if (!parts[i]->contents->finalized) return kNotFinalized;
            attribute.descriptors.push_back(parts[i]->contents);
        }
    } else {
        const auto* first = static_cast<const std::byte*>(elements);
        attribute.values.assign(first, first + static_cast<std::size_t>(count) * size_of(attribute.type));
    }
    held->contents->attributes[static_cast<Name>(name)] = std::move(attribute);
    return kSuccess;
}

PHANTOM_EXPORT int cudnnBackendFinalize(Held* held) {
    if (!good(held)) return kBadParameter;
    if (!complete(*held->contents)) return kBadParameter;
    if (held->contents->kind == Kind::engine && held->contents->number(Name::engine_index, 0) >= kEngines) {
        return kNotSupported;
    }
    held->contents->finalized = true;
    return kSuccess;
}

PHANTOM_EXPORT int cudnnBackendGetAttribute(const Held* held, int name, int type, std::int64_t room,
                                            std::int64_t* count, void* elements) {
    if (!good(held)) return kBadParameter;
    if (!held->contents->finalized) return kNotFinalized;
    const auto attribute = derived(*held->contents, static_cast<Name>(name));
    if (attribute) {
        const bool empty = attribute->values.empty() && attribute->descriptors.empty();
        if (!empty && static_cast<int>(attribute->type) != type) return kBadAttributeType;
        return read(*attribute, room, count, elements);
    }
    const auto* set = held->contents->find(static_cast<Name>(name));
    if (!set) return kNotSupported;
    if (static_cast<int>(set->type) != type) return kBadAttributeType;
    return read(*set, room, count, elements);
}

PHANTOM_EXPORT int cudnnBackendExecute(const Handle* handle, const Held* plan, const Held* pack) {
    if (!good(plan) || !good(pack)) return kBadParameter;
    if (plan->contents->kind != Kind::plan || pack->contents->kind != Kind::variant_pack) return kBadParameter;
    if (!plan->contents->finalized || !pack->contents->finalized) return kNotFinalized;
    if (workspace_of(*plan->contents) && !pack->contents->number(Name::pack_workspace, 0)) return kWorkspaceTooSmall;
    return enqueue(handle);
}
