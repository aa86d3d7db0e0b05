/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of coherence and asynchrony, to be searched exhaustively. docs/model.md says what is
 * modelled, within which bounds, and which function of the library each part stands for.
 *
 * A variant is chosen by macros, see `check`. What a function of the library does under the root's
 * lock is one d_step: no one else could look in between.
 */

/* ---- Bounds ---- */

#ifndef OPS
#define OPS 4 /* unfinished works at a time */
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef LEASES
#define LEASES 2 /* open at a time */
#endif
#ifndef FAILURES
#define FAILURES 0 /* transfers that fail when they run */
#endif
#define SEGS 2 /* the second is what the view is on */
#define STREAMS 2
#define PLACES (DEVICES + 1)
#define BLOCKS (2 * PLACES) /* of each place one in use, one retired */
#define WHOLE 3
#define VIEW 2

/* ---- Words ---- */

#define HOST 0
#define NO_SLOT 3
#define NO_BLOCK 7
#define NO_STREAM 7
#define LOST 8

#define READ 0
#define WRITE 1
#define READ_WRITE 2

#define QUEUED 1
#define ENDED 2
#define FAILED 3

#define FREE 0
#define IN_USE 1
#define RETIRED 2

#define bit(x) (1 << (x))
#define has(set, x) (((set) & bit(x)) != 0)
#define place_of(block) ((block) / 2)
#define at(block, seg) ((block) * SEGS + (seg))

/* ---- Bytes. A version is a number that stands for what a segment holds. 0: of no use to anyone.
 * SPOILED: a transfer that failed left it, or what was made of that ---- */

#define VERSIONS 14
#define SPOILED 15
#define VOID 128 /* among `from`: the bytes are going to be void, whatever the library thinks */

byte content[BLOCKS * SEGS];
byte state[BLOCKS];   /* of blocks */
byte rests[BLOCKS];   /* works that have to end before a retired block is freed */
#if FAILURES > 0
byte from[BLOCKS * SEGS]; /* works whose success the bytes depend on: the truth */
#endif
bool adopted[BLOCKS];

/* ---- The root ---- */

byte valid[SEGS];  /* the map: places; 0: fresh; LOST */
byte newest[SEGS] = 1; /* the version that a reader has to see: the truth */
byte block[PLACES] = NO_BLOCK;
bool zeroed;       /* fresh bytes are zero in the host's block */
#ifdef VIEW_OWN_FLAGS
byte view_valid; /* 0: the view was not used yet */
#endif

/* ---- Works, in the order of their start. A mask of works has a bit for each index ---- */

typedef Work {
    byte is;     /* 0, QUEUED, ENDED, FAILED */
    bool listed; /* at the root */
    byte stream;
    bool moves; /* a transfer, or a fill of fresh bytes: it may fail when it runs */
    byte segs;
    byte regions; /* segments that arrive and were not overwritten since; of transfers */
    byte reads;   /* slots, as the library knows them */
    byte writes;
    byte source;  /* blocks, as the device knows them */
    byte target;
    byte want[SEGS]; /* versions; 0: none */
    byte make[SEGS];
    byte after;      /* works of other streams that come first */
    byte begun;      /* it came after those below only; of a lease: as of its begin() */
    byte lease;      /* 1 + lease whose kernel it is, while that is open */
    byte told;       /* failures that had been told when it was asked for */
};
Work work[OPS];
byte works;
byte stream_after[STREAMS]; /* what the next work on a stream comes after */

/* ---- Leases ---- */

typedef Lease {
    bool open;
    byte place;
    byte mode;
    byte segs;
    byte stream;
    byte begun; /* works that there were */
    byte want[SEGS];
    byte make[SEGS];
    byte told;
};
Lease lease[LEASES];

byte failures; /* so far */
byte told;     /* of them */
bool owed;     /* someone saw what a failure left, and it was not told yet */
bool over;     /* the last handle is gone */

#ifdef CALLER
bool locked;
bool caller_is_gone;
byte awaited; /* works that the caller waits for */
#define unlocked (!locked)
#else
#define unlocked true
#endif

/* ---- Scratch: of one d_step ---- */

hidden int h, i, j, k, g, o, v, x, y, z, set, closure, count, ready, failure, instead, keep;
hidden int numbers[VERSIONS + 1];

#include "works.pml"
#include "calls.pml"
#include "processes.pml"
