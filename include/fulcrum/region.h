/* SPDX-FileCopyrightText: 2026 The Fulcrum authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FULCRUM_REGION(name, work): names the rest of a block for `fulcrum record`, in C and in C++. Nothing is linked and no
 * clock is read. Without a recorder it costs one branch; with one a few stores, and entries and work are counted
 * exactly while time comes from the samples.
 *
 *   void step() {
 *     FULCRUM_REGION("step", rows);   // until the end of the block; rows: units of work done in it, 0 for none
 *     ...
 *   }
 *
 * The open region leaves a mark in its own stack frame. A sample carries a piece of the stack, so the recorder finds the
 * regions that were open at that very instruction. Names are string literals of at most 55 characters.
 */
#ifndef FULCRUM_REGION_H
#define FULCRUM_REGION_H

/* NOLINTBEGIN(modernize-use-nullptr): C has none. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FULCRUM_REGION_ONCE __attribute__((weak, cold, noinline))
#ifdef __cplusplus
#define FULCRUM_REGION_INLINE inline
extern "C" {
#else
#define FULCRUM_REGION_INLINE static inline
#endif

enum {
  FULCRUM_REGION_VERSION = 1,
  FULCRUM_REGION_PATHS = 1024, /* distinct regions, counted with their parents */
  FULCRUM_REGION_SLOTS = 256,  /* threads with counters of their own; later ones share the first slot */
  FULCRUM_REGION_NAME_BYTES = 56
};
/* Spells no text and no likely pointer; the mark in a frame is this, mixed with the frame's address. */
#define FULCRUM_REGION_MAGIC 0x9be5c1f7a3d82e65u

typedef struct fulcrum_region_path {
  uint32_t state;  /* 0 free, 1 being written, 2 complete */
  uint32_t parent; /* number plus one; 0: none */
  char name[FULCRUM_REGION_NAME_BYTES];
} fulcrum_region_path;

typedef struct fulcrum_region_slot {
  uint64_t entries[FULCRUM_REGION_PATHS];
  double work[FULCRUM_REGION_PATHS];
} fulcrum_region_slot;

/* What the recorder and the program share, handed down by the environment variable FULCRUM_REGIONS. */
typedef struct fulcrum_region_memory {
  uint64_t magic;
  uint32_t version, slots_taken;
  fulcrum_region_path paths[FULCRUM_REGION_PATHS];
  fulcrum_region_slot slots[FULCRUM_REGION_SLOTS];
} fulcrum_region_memory;

/* In the frame of the block while the region is open. */
typedef struct fulcrum_region_mark {
  volatile uint64_t magic; /* FULCRUM_REGION_MAGIC ^ address of this word */
  volatile uint64_t path;  /* number plus one */
} fulcrum_region_mark;

/* One a thread. */
typedef struct fulcrum_region_thread {
  fulcrum_region_slot* slot;
  uint32_t current; /* innermost open region, number plus one */
  uint32_t shared;  /* the slot has other writers too */
} fulcrum_region_thread;

/* One of each in a program however many sources include this: 0 not looked yet, 1 nobody records, else the memory. */
__attribute__((weak)) fulcrum_region_memory* fulcrum_region_state;
/* A word that a fork clears in the child, whose counters must not be its parent's. */
__attribute__((weak)) uint64_t* fulcrum_region_alive;
__attribute__((weak)) __thread fulcrum_region_thread fulcrum_region_self;
#define FULCRUM_REGION_NOBODY ((fulcrum_region_memory*)1)

FULCRUM_REGION_ONCE fulcrum_region_memory* fulcrum_region_open(void) {
  fulcrum_region_memory* memory = FULCRUM_REGION_NOBODY;
  const char* path = getenv("FULCRUM_REGIONS");
  const int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (descriptor >= 0) {
    void* map = mmap(0, sizeof(fulcrum_region_memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (map != MAP_FAILED) {
      memory = (fulcrum_region_memory*)map;
      if (memory->magic != FULCRUM_REGION_MAGIC || memory->version != FULCRUM_REGION_VERSION) {
        munmap(map, sizeof(fulcrum_region_memory));
        memory = FULCRUM_REGION_NOBODY;
      }
    }
  }
  if (memory != FULCRUM_REGION_NOBODY) {
    void* word = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED) {
      memory = FULCRUM_REGION_NOBODY;
    } else {
      madvise(word, 4096, 18 /* MADV_WIPEONFORK */);
      fulcrum_region_alive = (uint64_t*)word;
      *fulcrum_region_alive = 1;
    }
  }
  __atomic_store_n(&fulcrum_region_state, memory, __ATOMIC_RELEASE);
  return memory;
}

FULCRUM_REGION_ONCE void fulcrum_region_take_slot(fulcrum_region_memory* memory,
                                                  fulcrum_region_thread* self) {
  const uint32_t number = __atomic_add_fetch(&memory->slots_taken, 1, __ATOMIC_RELAXED);
  *fulcrum_region_alive = 1;
  self->shared = number >= FULCRUM_REGION_SLOTS;
  self->slot = &memory->slots[self->shared ? 0 : number];
}

/* Number plus one of the region `name` inside `parent`, made on first use; 0 when there are too many. */
FULCRUM_REGION_ONCE uint32_t fulcrum_region_find(fulcrum_region_memory* memory, const char* name,
                                                 uint32_t parent) {
  for (uint32_t i = 0; i < FULCRUM_REGION_PATHS; ++i) {
    fulcrum_region_path* path = &memory->paths[i];
    uint32_t free_state = 0;
    if (__atomic_compare_exchange_n(&path->state, &free_state, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      path->parent = parent;
      strncpy(path->name, name, FULCRUM_REGION_NAME_BYTES - 1);
      __atomic_store_n(&path->state, 2, __ATOMIC_RELEASE);
      return i + 1;
    }
    while (__atomic_load_n(&path->state, __ATOMIC_ACQUIRE) == 1) {
    }
    if (path->parent == parent && strncmp(path->name, name, FULCRUM_REGION_NAME_BYTES - 1) == 0) return i + 1;
  }
  return 0;
}

/* `site` remembers the last parent and number of one place in the source: parent in the upper half. */
__attribute__((unused)) FULCRUM_REGION_INLINE uint32_t fulcrum_region_enter(fulcrum_region_mark* mark,
                                                                            uint64_t* site, const char* name,
                                                                            double work) {
  fulcrum_region_memory* memory = __atomic_load_n(&fulcrum_region_state, __ATOMIC_ACQUIRE);
  mark->path = 0;
  if (__builtin_expect(memory == FULCRUM_REGION_NOBODY, 1)) return 0;
  if (memory == 0 && (memory = fulcrum_region_open()) == FULCRUM_REGION_NOBODY) return 0;
  fulcrum_region_thread* self = &fulcrum_region_self;
  if (__builtin_expect(self->slot == 0 || *fulcrum_region_alive == 0, 0))
    fulcrum_region_take_slot(memory, self);
  const uint32_t parent = self->current;
  uint64_t known = __atomic_load_n(site, __ATOMIC_RELAXED);
  if (__builtin_expect((uint32_t)known == 0 || (uint32_t)(known >> 32) != parent, 0)) {
    known = ((uint64_t)parent << 32) | fulcrum_region_find(memory, name, parent);
    __atomic_store_n(site, known, __ATOMIC_RELAXED);
  }
  const uint32_t number = (uint32_t)known;
  if (number == 0) return 0;
  if (self->shared) {
    __atomic_add_fetch(&self->slot->entries[number - 1], 1, __ATOMIC_RELAXED);
    if (work != 0) { /* several threads add here: try until the sum is ours */
      double old = self->slot->work[number - 1], sum = old + work;
      while (!__atomic_compare_exchange(&self->slot->work[number - 1], &old, &sum, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
        sum = old + work;
      }
    }
  } else {
    self->slot->entries[number - 1] += 1;
    self->slot->work[number - 1] += work;
  }
  self->current = number;
  mark->path = number;
  mark->magic = FULCRUM_REGION_MAGIC ^ (uint64_t)(uintptr_t)&mark->magic;
  return parent;
}

__attribute__((unused)) FULCRUM_REGION_INLINE void fulcrum_region_leave(fulcrum_region_mark* mark,
                                                                        uint32_t parent) {
  if (__builtin_expect(mark->path == 0, 1)) return;
  mark->magic = 0;
  fulcrum_region_self.current = parent;
}

#ifdef __cplusplus
}
struct fulcrum_region_scope {
  fulcrum_region_mark mark;
  uint32_t parent;
  fulcrum_region_scope(uint64_t* site, const char* name, double work)
      : parent(fulcrum_region_enter(&mark, site, name, work)) {}
  ~fulcrum_region_scope() { fulcrum_region_leave(&mark, parent); }
  fulcrum_region_scope(const fulcrum_region_scope&) = delete;
  fulcrum_region_scope& operator=(const fulcrum_region_scope&) = delete;
};
#else
typedef struct fulcrum_region_scope {
  fulcrum_region_mark mark;
  uint32_t parent;
} fulcrum_region_scope;
static inline __attribute__((unused)) void fulcrum_region_end(fulcrum_region_scope* scope) {
  fulcrum_region_leave(&scope->mark, scope->parent);
}
#endif

#define FULCRUM_REGION_JOIN2(a, b) a##b
#define FULCRUM_REGION_JOIN(a, b) FULCRUM_REGION_JOIN2(a, b)
#ifdef __cplusplus
#define FULCRUM_REGION_AS(n, name, work)                              \
  static uint64_t FULCRUM_REGION_JOIN(fulcrum_region_site_, n) = 0;   \
  const fulcrum_region_scope FULCRUM_REGION_JOIN(fulcrum_region_, n)( \
      &FULCRUM_REGION_JOIN(fulcrum_region_site_, n), name, (double)(work))
#else
#define FULCRUM_REGION_AS(n, name, work)                                                                     \
  static uint64_t FULCRUM_REGION_JOIN(fulcrum_region_site_, n) = 0;                                          \
  __attribute__((cleanup(fulcrum_region_end))) fulcrum_region_scope FULCRUM_REGION_JOIN(fulcrum_region_, n); \
  FULCRUM_REGION_JOIN(fulcrum_region_, n).parent =                                                           \
      fulcrum_region_enter(&FULCRUM_REGION_JOIN(fulcrum_region_, n).mark,                                    \
                           &FULCRUM_REGION_JOIN(fulcrum_region_site_, n), name, (double)(work))
#endif
#define FULCRUM_REGION(name, work) FULCRUM_REGION_AS(__COUNTER__, name, work)

/* NOLINTEND(modernize-use-nullptr) */
#endif
