#include "phantom/libraries/cudnn/backend/descriptor.h"

#include <cstring>

namespace movie::phantom::cudnn {

std::size_t size_of(ElementType type) {
    switch (type) {
        case ElementType::boolean:
        case ElementType::character:
            return 1;
        case ElementType::handle:
        case ElementType::int64:
        case ElementType::double_floating:
        case ElementType::pointer:
        case ElementType::descriptor:
            return 8;
        case ElementType::fraction:
            return 16;
        default:
            return 4;
    }
}

const Attribute* Descriptor::find(Name name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : &found->second;
}

const Descriptor* Descriptor::part(Name name) const {
    const auto* found = find(name);
    return found && !found->descriptors.empty() ? found->descriptors.front().get() : nullptr;
}

std::vector<std::int64_t> Descriptor::numbers(Name name) const {
    const auto* found = find(name);
    if (!found) return {};
    const auto size = size_of(found->type);
    std::vector<std::int64_t> numbers(found->values.size() / size);
    for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(&numbers[i], &found->values[i * size], size);
    return numbers;
}

std::int64_t Descriptor::number(Name name, std::int64_t otherwise) const {
    const auto found = numbers(name);
    return found.empty() ? otherwise : found.front();
}

}  // namespace movie::phantom::cudnn
