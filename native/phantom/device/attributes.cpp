#include "phantom/device/attributes.h"

#include <cstdio>
#include <limits>

namespace movie::phantom {

std::optional<int> attribute(const Card& card, int number, int device) {
    if (number < 1 || number > 147) return std::nullopt;
    switch (number) {
        case 1:  // threads a block, and its x and y
        case 2:
        case 3:
            return 1024;
        case 4:
            return 64;
        case 5:
            return std::numeric_limits<int>::max();
        case 6:
        case 7:
            return 65535;
        case 8:  // shared memory a block
            return card.shared_per_block;
        case 9:  // constant memory
            return 65536;
        case 10:  // threads a warp
            return 32;
        case 11:  // pitch of copies
            return std::numeric_limits<int>::max();
        case 12:  // registers a block, a multiprocessor
        case 82:
            return card.registers;
        case 13:  // clock
            return card.clock;
        case 14:  // alignment of textures, surfaces
        case 30:
            return 512;
        case 15:  // copies beside kernels
            return 1;
        case 16:  // multiprocessors
            return card.multiprocessors;
        case 19:  // can map host memory
        case 31:  // concurrent kernels
        case 41:  // one address space
        case 78:  // stream priorities
        case 79:  // L1 caches
        case 80:
        case 83:  // managed memory
        case 89:
        case 90:
        case 91:
        case 92:  // stream memory operations
        case 93:
        case 94:
        case 95:  // cooperative launch
        case 99:  // host registration
        case 114:
        case 115:  // memory pools
        case 122:
        case 125:  // interprocess events
            return 1;
        case 102:  // virtual memory management
        case 103:  // POSIX file descriptors
            return card.virtual_memory ? 1 : 0;
        case 32:  // ECC
            return card.ecc ? 1 : 0;
        case 33:  // PCI bus
            return 7 + device;
        case 36:  // clock of the memory
            return card.memory_clock;
        case 37:  // width of the bus
            return card.bus_width;
        case 38:  // L2 cache
            return card.l2_cache;
        case 39:  // threads a multiprocessor
            return card.threads_per_multiprocessor;
        case 40:  // copy engines
            return card.copy_engines;
        case 51:  // alignment of pitched textures
            return 32;
        case 75:  // compute capability
            return card.major;
        case 76:
            return card.minor;
        case 81:  // shared memory a multiprocessor
            return card.shared_per_multiprocessor;
        case 87:  // single to double precision
            return card.minor == 0 && card.major < 10 ? 2 : 64;
        case 97:  // shared memory that a block may ask for
            return card.shared_per_block_optin;
        case 106:  // blocks a multiprocessor
            return card.blocks_per_multiprocessor;
        case 108:  // L2 cache that can be set aside
            return card.major >= 8 ? card.l2_cache / 4 * 3 : 0;
        case 109:  // window of access policies
            return card.major >= 8 ? 128 * 1024 * 1024 : 0;
        case 111:  // shared memory that the system takes of each block
            return card.major >= 8 ? card.shared_reserved_per_block : 0;
        case 119:  // pools can be shared by file descriptors
            return 1;
        case 120:  // clusters
            return card.major >= 9 ? 1 : 0;
        case 126:  // domains of memory order
            return card.major >= 9 ? 4 : 1;
        case 128:  // fabric handles
            return card.fabric ? 1 : 0;
        case 130:  // NUMA
            return 0;
        case 131:  // NUMA node of the card, of the host
        case 134:
            return -1;
        case 142:  // pools in host memory
        case 144:
            return 0;
        case 17:  // time limit for kernels, integrated, compute mode, other drivers, PCI domain
        case 18:
        case 20:
        case 34:
        case 35:
        case 50:
            return 0;
        default:  // limits of textures and surfaces, and what these cards lack
            return number >= 21 && number <= 77 ? 16384 : 0;
    }
}

std::string bus_id(int device) {
    char text[16];
    std::snprintf(text, sizeof text, "0000:%02X:00.0", static_cast<unsigned>(7 + device) & 0xff);
    return text;
}

}  // namespace movie::phantom
