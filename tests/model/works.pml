/* SPDX-License-Identifier: BSD-2-Clause */
/* Works: their order, their end, their failure; and the blocks that wait for them. */

/* ---- Versions: numbered in the order in which they are met, so that states which differ in
 * nothing but numbers are one ---- */

inline number(version)
{
    if
    :: version != 0 && version != SPOILED ->
        if
        :: numbers[version] == 0 -> count++; numbers[version] = count
        :: else
        fi;
        version = numbers[version]
    :: else
    fi
}

#define is_fill(n) (work[n].is != 0 && work[n].moves && work[n].source == work[n].target)

/* z: whether anyone will look at a segment of a block. Where no one will it holds nothing, which is
 * worse than something old for those who look all the same. */
inline is_looked_at(b, seg)
{
    z = (state[b] == IN_USE && (has(valid[seg], place_of(b)) ||
                                (valid[seg] == 0 && zeroed && place_of(b) == HOST)));
    for (x : 0 .. OPS - 1) {
        z = z || (work[x].is != 0 && work[x].source == b && has(work[x].segs, seg));
        /* Bytes that a fill may leave as fresh as they were. */
        z = z || (zeroed && b == block[HOST] && is_fill(x) && has(work[x].regions, seg))
    }
}

/* For who reads a trail; a search does not print. */
inline print_state()
{
    printf("    map %d %d, zeroed %d, bytes host %d %d, device %d %d\n", valid[0], valid[1], zeroed,
           content[at(block[0], 0) % (BLOCKS * SEGS)], content[at(block[0], 1) % (BLOCKS * SEGS)],
           content[at(block[1], 0) % (BLOCKS * SEGS)], content[at(block[1], 1) % (BLOCKS * SEGS)]);
    for (x : 0 .. OPS - 1) {
        if
        :: work[x].is != 0 ->
            printf("    %d is %d, listed %d: segs %d, arriving %d, ", x, work[x].is,
                   work[x].listed, work[x].segs, work[x].regions);
            printf("%d -> %d, stream %d, after %d, begun %d\n", work[x].reads, work[x].writes,
                   work[x].stream, work[x].after, work[x].begun)
        :: else
        fi
    }
}

inline tidy()
{
    for (h : 0 .. SEGS - 1) {
        for (x : 0 .. VERSIONS) {
            numbers[x] = 0
        }
        count = 0;
        number(newest[h]);
        for (x : 0 .. OPS - 1) {
            number(work[x].want[h]);
            number(work[x].make[h])
        }
        for (x : 0 .. LEASES - 1) {
            number(lease[x].want[h]);
            number(lease[x].make[h])
        }
        for (y : 0 .. BLOCKS - 1) {
            is_looked_at(y, h);
            v = content[at(y, h)];
            content[at(y, h)] = (!z -> 0 : (v == SPOILED -> SPOILED : numbers[v]))
        }
    };
    print_state();
    h = 0 /* a d_step may not end with a loop */
}

/* One in a step and segment. */
#define new_version(seg) newest[seg] = VERSIONS

/* ---- The truth about bytes that depend on transfers ---- */

#if FAILURES > 0
#define depends(target, seg, on) from[at(target, seg)] = on
#define origins(source, seg) from[at(source, seg)]
#define is_void(b, seg) ((from[at(b, seg)] & VOID) != 0)
#else
#define depends(target, seg, on) skip
#define origins(source, seg) 0
#define is_void(b, seg) false
#endif

/* ---- The table. An index says how old a work is, so those above one that goes move down ---- */

#define without(mask, n) (((mask) & (bit(n) - 1)) | (((mask) >> 1) & ~(bit(n) - 1)))

inline clear_work(n)
{
    work[n].is = 0; work[n].listed = false; work[n].stream = 0; work[n].segs = 0;
    work[n].regions = 0; work[n].reads = 0; work[n].writes = 0; work[n].source = 0;
    work[n].target = 0; work[n].after = 0; work[n].begun = 0; work[n].lease = 0;
    work[n].told = 0; work[n].moves = false;
    work[n].want[0] = 0; work[n].want[1] = 0; work[n].make[0] = 0; work[n].make[1] = 0
}

inline move_work(to, n)
{
    work[to].is = work[n].is; work[to].listed = work[n].listed;
    work[to].stream = work[n].stream; work[to].segs = work[n].segs;
    work[to].regions = work[n].regions; work[to].reads = work[n].reads;
    work[to].writes = work[n].writes; work[to].source = work[n].source;
    work[to].target = work[n].target; work[to].after = work[n].after;
    work[to].begun = work[n].begun;
    work[to].lease = work[n].lease; work[to].told = work[n].told; work[to].moves = work[n].moves;
    work[to].want[0] = work[n].want[0]; work[to].want[1] = work[n].want[1];
    work[to].make[0] = work[n].make[0]; work[to].make[1] = work[n].make[1]
}

inline remove_work(n)
{
    for (x : 0 .. OPS - 1) {
        work[x].after = without(work[x].after, n);
        work[x].begun = work[x].begun - (work[x].begun > n -> 1 : 0)
    }
    for (x : 0 .. LEASES - 1) {
        lease[x].begun = lease[x].begun - (lease[x].begun > n -> 1 : 0)
    }
    for (x : 0 .. STREAMS - 1) {
        stream_after[x] = without(stream_after[x], n)
    }
    for (x : 0 .. BLOCKS - 1) {
        rests[x] = without(rests[x], n)
    }
#if FAILURES > 0
    for (x : 0 .. BLOCKS * SEGS - 1) {
        from[x] = without(from[x] & ~VOID, n) | (from[x] & VOID)
    }
#endif
#ifdef CALLER
    awaited = without(awaited, n);
#endif
    works--;
    x = n;
    do
    :: x < works -> y = x + 1; move_work(x, y); x++
    :: else -> break
    od;
    clear_work(works)
}

/* What has ended and is not listed is nothing any more. */
inline purge()
{
    i = 0;
    do
    :: i < works && work[i].is != QUEUED && !work[i].listed -> remove_work(i)
    :: i < works && (work[i].is == QUEUED || work[i].listed) -> i++
    :: else -> break
    od
}

/* ---- Blocks ---- */

inline free_block(b)
{
    for (x : 0 .. OPS - 1) {
        /* No use of freed memory: nothing is queued that would. */
        assert(!(work[x].is == QUEUED && (work[x].source == b || work[x].target == b)))
    }
    state[b] = FREE;
    rests[b] = 0;
    adopted[b] = false;
    content[at(b, 0)] = 0;
    content[at(b, 1)] = 0;
    depends(b, 0, 0);
    depends(b, 1, 0)
}

/* The block of a place stops being the root's. Freed as early as can be: worse for those who would
 * still use it than any later moment. */
inline retire(p)
{
    y = block[p];
    block[p] = NO_BLOCK;
    rests[y] = 0;
    for (x : 0 .. OPS - 1) {
        if
        :: work[x].is == QUEUED && work[x].listed && (work[x].reads == p || work[x].writes == p) ->
            rests[y] = rests[y] | bit(x)
        :: else
        fi
    }
#ifdef NO_RETIRE
    rests[y] = 0;
#endif
    state[y] = RETIRED;
    if
    :: rests[y] == 0 -> free_block(y)
    :: else
    fi;
    y = 0
}

/* No work concerns a slot's memory any more. */
inline leave_slot(p)
{
    for (x : 0 .. OPS - 1) {
        if
        :: work[x].is != 0 && work[x].listed ->
            if
            :: work[x].reads == p -> work[x].reads = NO_SLOT
            :: else
            fi;
            if
            :: work[x].writes == p -> work[x].writes = NO_SLOT; work[x].regions = 0
            :: else
            fi;
            if
            :: work[x].reads == NO_SLOT && work[x].writes == NO_SLOT ->
                work[x].listed = false
            :: else
            fi
        :: else
        fi
    }
}

/* A block that no one knows; v: NO_BLOCK if there is none within the bounds. */
inline find_block(p)
{
    v = NO_BLOCK;
    for (x : 2 * p .. 2 * p + 1) {
        z = (state[x] == FREE);
        for (y : 0 .. OPS - 1) {
            z = z && !(work[y].is != 0 && (work[y].source == x || work[y].target == x))
        }
        if
        :: z && v == NO_BLOCK -> v = x
        :: else
        fi
    }
}

/* ready: false where there is no room within the bounds. A fresh host block is zero where bytes
 * are fresh. */
inline ensure_memory(p)
{
    if
    :: block[p] == NO_BLOCK ->
        find_block(p);
        if
        :: v == NO_BLOCK -> ready = false
        :: else ->
            block[p] = v;
            state[v] = IN_USE;
            if
            :: p == HOST ->
                zeroed = (valid[0] == 0 || valid[1] == 0);
                content[at(v, 0)] = (valid[0] == 0 -> newest[0] : 0);
                content[at(v, 1)] = (valid[1] == 0 -> newest[1] : 0)
            :: else
            fi
        fi
    :: else
    fi
}

/* ---- Order ---- */

/* Whether work n has to end before a use of a slot's bytes. */
#ifdef NO_WAR
#define conflicts(n, slot, range, writing) (work[n].is != 0 && work[n].listed && \
    (work[n].segs & (range)) != 0 && work[n].writes == (slot))
#else
#define conflicts(n, slot, range, writing) (work[n].is != 0 && work[n].listed && \
    (work[n].segs & (range)) != 0 && \
    (work[n].writes == (slot) || ((writing) && work[n].reads == (slot))))
#endif

#ifdef NO_BEGUN
#define began_after(later, earlier) ((earlier) < (later))
#else
#define began_after(later, earlier) ((earlier) < work[later].begun)
#endif

/* Whether `later` came after `earlier`. */
#define comes_after(later, earlier) (began_after(later, earlier) && \
    (work[earlier].segs & work[later].segs) != 0 && \
    ((work[earlier].writes != NO_SLOT && (work[later].writes == work[earlier].writes || \
                                          work[later].reads == work[earlier].writes)) || \
     (work[later].writes != NO_SLOT && work[earlier].reads == work[later].writes)))

/* Puts a stream's further work after all that conflicts. */
inline order(s, slot, range, writing)
{
#ifdef NO_STREAM_WAIT
    skip
#else
    for (x : 0 .. OPS - 1) {
        if
        :: conflicts(x, slot, range, writing) && work[x].is == QUEUED && work[x].stream != s ->
            stream_after[s] = stream_after[s] | bit(x)
        :: else
        fi
    }
#endif
}

/* set: what a call that waits has to wait for, for a use of a slot's bytes. */
inline add_unfinished(slot, range, writing)
{
    for (x : 0 .. OPS - 1) {
        if
        :: conflicts(x, slot, range, writing) && work[x].is == QUEUED -> set = set | bit(x)
        :: else
        fi
    }
}

/* A new work; its versions are the caller's to set. */
inline put(s, range, slot_read, slot_written)
{
    assert(works < OPS);
    k = works;
    works++;
    work[k].is = QUEUED;
    work[k].listed = true;
    work[k].stream = s;
    work[k].segs = range;
    work[k].reads = slot_read;
    work[k].writes = slot_written;
    work[k].source = NO_BLOCK;
    work[k].target = NO_BLOCK;
    if
    :: slot_read != NO_SLOT -> work[k].source = block[slot_read]
    :: else
    fi;
    if
    :: slot_written != NO_SLOT -> work[k].target = block[slot_written]
    :: else
    fi;
    work[k].after = stream_after[s];
    work[k].begun = k;
    work[k].told = told;
    stream_after[s] = 0
}

/* ---- What a lease's work stands for: it came after it, and so does who comes after that ---- */

#ifdef STANDS_FOR_MOVES
#define can_stand_for(later, earlier) (work[earlier].regions == 0 && began_after(later, earlier))
#else
#define can_stand_for(later, earlier) (work[earlier].regions == 0 && \
    !work[earlier].moves && began_after(later, earlier))
#endif
#ifdef STANDS_FOR_OTHERS
#define same_stream(later, earlier) true
#else
#define same_stream(later, earlier) (work[earlier].stream == work[later].stream)
#endif

#define stands_for_written(later, earlier) (work[later].writes != NO_SLOT && \
    (work[earlier].writes == NO_SLOT || work[earlier].writes == work[later].writes) && \
    (work[earlier].reads == NO_SLOT || work[earlier].reads == work[later].writes))
#define stands_for_read(later, earlier) (work[later].writes == NO_SLOT && \
    work[earlier].writes == NO_SLOT && work[earlier].reads == work[later].reads && \
    same_stream(later, earlier))
#define stands_for(later, earlier) (work[earlier].is != 0 && work[earlier].listed && \
    (work[earlier].segs & ~work[later].segs) == 0 && can_stand_for(later, earlier) && \
    (stands_for_written(later, earlier) || stands_for_read(later, earlier)))

inline drop_stood_for(n)
{
    for (x : 0 .. OPS - 1) {
        if
        :: x < n && stands_for(n, x) -> work[x].listed = false
        :: else
        fi
    }
}

/* ---- New bytes: how earlier works end does not matter, but of those that they come from ---- */

inline overwritten(range, made_from)
{
    for (g : 0 .. SEGS - 1) {
        keep = (made_from == NO_SLOT -> 0 : bit(made_from));
        x = OPS - 1;
        do
        :: x >= 0 ->
            if
            :: has(range, g) && work[x].is != 0 && has(work[x].regions, g) ->
                if
                :: !has(keep, work[x].writes) ->
                    work[x].regions = work[x].regions & ~bit(g)
#ifndef CUT_THE_CHAIN
                :: has(keep, work[x].writes) && work[x].reads != NO_SLOT ->
                    keep = keep | bit(work[x].reads)
#endif
                :: else
                fi
            :: else
            fi;
            x--
        :: else -> break
        od
    }
    keep = 0
}

/* ---- Failure ---- */

/* Where the bytes are if they are nowhere else. */
inline find_origin(n, seg)
{
    if
    :: is_fill(n) -> instead = 0
    :: !is_fill(n) && work[n].reads == NO_SLOT -> instead = LOST
    :: else ->
        instead = bit(work[n].reads);
#ifndef SOURCE_ALWAYS_GOOD
        for (x : 0 .. OPS - 1) {
            if
            :: x > n && work[x].is != 0 && work[x].listed && work[x].writes == work[n].reads &&
               has(work[x].segs, seg) -> instead = LOST
            :: else
            fi
        }
#endif
    fi
}

/* closure: the failed work, and what was copied on from there. */
inline find_spoiled(n, seg)
{
    closure = bit(n);
    for (x : 0 .. OPS - 1) {
        for (y : 0 .. OPS - 1) {
#ifndef NO_TAINT
            if
            :: has(closure, y) && x > y && work[x].is != 0 && work[x].listed &&
               has(work[x].regions, seg) && work[x].reads == work[y].writes &&
               work[x].writes != work[x].reads -> closure = closure | bit(x)
            :: else
            fi
#else
            skip
#endif
        }
    }
}

inline withdraw(n, seg)
{
    for (x : 0 .. OPS - 1) {
        if
        :: has(closure, x) ->
            if
            :: work[x].writes == HOST -> zeroed = false
            :: else
            fi;
#ifndef KEEP_SPOILED
            work[x].regions = work[x].regions & ~bit(seg);
#endif
            set = set | bit(work[x].writes)
        :: else
        fi
    }
#ifndef KEEP_ZEROED
    /* What is fresh again is not zero where it was copied to, even if that does not count now. */
    zeroed = zeroed && instead != 0
#endif
}

/* Nothing that was good may be called void; nothing is lost but by writing over the source. */
inline judge(seg)
{
    for (x : 0 .. PLACES - 1) {
        assert(!(has(valid[seg], x) && !is_void(block[x], seg)))
    }
}

inline judge_origin(seg)
{
    for (x : 0 .. PLACES - 1) {
        assert(!(has(valid[seg], x) && is_void(block[x], seg)))
    }
}

inline take_back(n)
{
    for (g : 0 .. SEGS - 1) {
        if
        :: has(work[n].regions, g) ->
            find_origin(n, g);
            find_spoiled(n, g);
            set = 0;
            withdraw(n, g);
            if
            :: (valid[g] & set) != 0 && (valid[g] & ~set) == 0 ->
                judge(g);
                /* The source was not thrown away while bytes were under way from it. */
                assert(!(instead == LOST && work[n].reads == NO_SLOT));
                valid[g] = instead;
                newest[g] = (instead == LOST -> 0 :
                             (instead == 0 -> work[n].make[g] : work[n].want[g]));
                judge_origin(g)
            :: (valid[g] & set) != 0 && (valid[g] & ~set) != 0 -> valid[g] = valid[g] & ~set
            :: else
            fi
        :: else
        fi
    }
    closure = 0;
    set = 0
}

/* ---- The end of work ---- */

inline forget(n)
{
    assert(work[n].is != QUEUED);
    if
    :: work[n].is == FAILED -> failure = true; told++; owed = false; take_back(n)
    :: else
    fi;
    work[n].listed = false
}

/* closure: a work and all that it came after. */
inline find_earlier(n)
{
    closure = bit(n);
    x = n;
    do
    :: x >= 0 ->
        if
        :: has(closure, x) ->
            for (y : 0 .. OPS - 1) {
                if
                :: y < x && work[y].is != 0 && work[y].listed && comes_after(x, y) ->
                    closure = closure | bit(y)
                :: else
                fi
            }
        :: else
        fi;
        x--
    :: else -> break
    od
}

/* What it came after has ended as well, and its failure comes first. */
inline finish(n)
{
#ifdef FORGET_OUT_OF_ORDER
    forget(n);
#else
    find_earlier(n);
    count = closure;
    for (j : 0 .. OPS - 1) {
        if
        :: has(count, j) -> forget(j)
        :: else
        fi
    }
#endif
    count = 0
}

/* failure: whether one is to be told. */
inline reap()
{
    failure = false;
#ifdef FORGET_OUT_OF_ORDER
    o = OPS - 1;
    do
    :: o >= 0 ->
        if
        :: work[o].is != 0 && work[o].listed && work[o].is != QUEUED -> finish(o)
        :: else
        fi;
        o--
    :: else -> break
    od;
#else
    for (o : 0 .. OPS - 1) {
        if
        :: work[o].is != 0 && work[o].listed && work[o].is != QUEUED -> finish(o)
        :: else
        fi
    }
#endif
    purge()
}

/* Work that ended well, after which nothing can fail that it came after, is as good as forgotten:
 * the library may look later, but would find the same. */
inline forget_early(n)
{
#if defined(FORGET_OUT_OF_ORDER)
    skip
#elif FAILURES > 0
    find_earlier(n);
    z = true;
    for (x : 0 .. OPS - 1) {
        z = z && !(has(closure, x) && work[x].is != ENDED)
    }
    if
    :: z ->
        for (x : 0 .. OPS - 1) {
            if
            :: has(closure, x) -> work[x].listed = false
            :: else
            fi
        }
    :: else
    fi;
    closure = 0
#else
    work[n].listed = false
#endif
}

/* ---- A device does a work ---- */

/* Whether it is at the head of its stream, and free to run. */
#define is_behind(n, other) ((other) < (n) && work[other].is == QUEUED && \
    work[other].stream == work[n].stream)
#if OPS == 3
#define is_first(n) !(is_behind(n, 0) || is_behind(n, 1))
#elif OPS == 4
#define is_first(n) !(is_behind(n, 0) || is_behind(n, 1) || is_behind(n, 2))
#else
#define is_first(n) !(is_behind(n, 0) || is_behind(n, 1) || is_behind(n, 2) || is_behind(n, 3))
#endif
#define can_run(n) (work[n].is == QUEUED && work[n].after == 0 && is_first(n))

/* v: what it reads of a segment. No stale read: what was the newest when it was asked for; unless
 * a failure since then has been, or will be, told. */
inline look(n, seg)
{
    v = work[n].want[seg];
    if
    :: v != 0 ->
        assert(state[work[n].source] != FREE);
        v = content[at(work[n].source, seg)];
        assert(v == work[n].want[seg] || work[n].told < failures);
        owed = owed || (v != work[n].want[seg] && told < failures)
    :: else
    fi
}

inline land(n, seg)
{
    if
    :: work[n].make[seg] != 0 ->
        assert(state[work[n].target] != FREE);
        content[at(work[n].target, seg)] =
            (v == work[n].want[seg] -> work[n].make[seg] : SPOILED)
    :: else
    fi
}

/* The event: who came after it may go on. */
inline tell_end(n)
{
    for (x : 0 .. OPS - 1) {
        work[x].after = work[x].after & ~bit(n)
    }
    for (x : 0 .. STREAMS - 1) {
        stream_after[x] = stream_after[x] & ~bit(n)
    }
#ifdef CALLER
    awaited = awaited & ~bit(n);
#endif
    for (j : 0 .. BLOCKS - 1) {
        if
        :: state[j] == RETIRED && has(rests[j], n) ->
            rests[j] = rests[j] & ~bit(n);
            if
            :: rests[j] == 0 -> free_block(j)
            :: else
            fi
        :: else
        fi
    }
}

inline carry_out(n)
{
    for (g : 0 .. SEGS - 1) {
        look(n, g);
        land(n, g)
    }
    work[n].is = ENDED;
    work[n].told = 0;
    for (g : 0 .. SEGS - 1) {
        work[n].want[g] = 0;
        work[n].make[g] = 0
    }
    tell_end(n);
#if FAILURES > 0
    for (x : 0 .. BLOCKS * SEGS - 1) {
        from[x] = from[x] & ~bit(n)
    }
#endif
    forget_early(n);
    purge();
    tidy()
}

#define may_fail(n) (work[n].moves && failures < FAILURES)

inline fail(n)
{
    for (g : 0 .. SEGS - 1) {
        if
        :: work[n].make[g] != 0 ->
            assert(state[work[n].target] != FREE);
            content[at(work[n].target, g)] = SPOILED
        :: else
        fi
    }
    work[n].is = FAILED;
    failures++;
    tell_end(n);
#if FAILURES > 0
    for (x : 0 .. BLOCKS * SEGS - 1) {
        if
        :: has(from[x], n) -> from[x] = (from[x] & ~bit(n)) | VOID
        :: else
        fi
    }
#endif
    purge();
    tidy()
}
