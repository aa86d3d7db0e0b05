/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls. Each is what happens under the root's lock. A call that would return an error, or that
 * there is no room for within the bounds, changes nothing; one that waits is tried again (by the
 * caller of `processes.pml`, which blocks for what is in `set`; otherwise whenever the user likes).
 */

#define writes(mode) ((mode) != READ)

/* The set of places that a call sees. A view has the root's. */
#ifdef VIEW_OWN_FLAGS
#define is_view(range) ((range) == VIEW && view_valid != 0)
#define seen(range, seg) (is_view(range) * view_valid + !is_view(range) * valid[seg])
#else
#define seen(range, seg) valid[seg]
#endif

/* ready: false when an open lease excludes the use: BUSY. */
inline check_leases(range, writing)
{
#ifdef NO_LEASE_CHECK
    skip
#else
    for (x : 0 .. LEASES - 1) {
        ready = ready && !(lease[x].open && (lease[x].segs & (range)) != 0 &&
                           ((writing) || writes(lease[x].mode)))
    }
#endif
}

/* Whether bytes are lost that would have to be read. */
inline check_lost(p, range)
{
    for (x : 0 .. SEGS - 1) {
        ready = ready && !(has(range, x) && seen(range, x) == LOST)
    }
}

/* ---- Where missing bytes come from ---- */

/* o: where a segment is to come from: NO_SLOT: nothing is to be done, the place itself: zeros.
 * Which of several is not said: the library takes the host first; ANY_SOURCE leaves it open. */
inline find_source(p, range, seg, prefer)
{
    v = seen(range, seg);
    if
    :: has(v, p) -> o = NO_SLOT
    :: !has(v, p) && v == 0 -> o = (p == HOST && zeroed -> NO_SLOT : p)
    :: !has(v, p) && v != 0 ->
        o = (has(v, prefer) -> prefer : (has(v, 0) -> 0 : (has(v, 1) -> 1 : 2)))
    :: else
    fi
}

/* count: how many works a transfer to a place would be. */
inline count_sources(p, range, prefer)
{
    set = 0;
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) ->
            find_source(p, range, g, prefer);
            set = set | (o == NO_SLOT -> 0 : bit(o))
        :: else
        fi
    }
    count = (set & 1) + ((set >> 1) & 1) + ((set >> 2) & 1);
    set = 0
}

/* There has to be room for these, and for what the holders of leases will put there. */
inline check_room(more)
{
    x = works + count + more;
#ifndef LAUNCH_AT_ONCE
    for (y : 0 .. LEASES - 1) {
        x = x + (lease[y].open && lease[y].stream != NO_STREAM -> 1 : 0)
    }
#endif
    ready = ready && x <= OPS;
    y = 0
}

/* ---- Transfers on streams: nothing is waited for ---- */

inline start_transfer(s, p, giver, range)
{
    order(s, p, range, true);
    order(s, giver, range, false);
    put(s, range, giver, p);
    work[k].moves = true;
    work[k].regions = range;
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) ->
            work[k].make[g] = newest[g];
            work[k].want[g] = (giver == p -> 0 : newest[g]);
            depends(work[k].target, g,
                    (giver == p -> 0 : origins(work[k].source, g)) | bit(k))
        :: else
        fi
    }
}

inline bring_in(s, p, range, prefer)
{
    for (j : 0 .. PLACES - 1) {
        keep = 0;
        for (g : 0 .. SEGS - 1) {
            if
            :: has(range, g) ->
                find_source(p, range, g, prefer);
                keep = keep | (o == j -> bit(g) : 0)
            :: else
            fi
        }
        if
        :: keep != 0 -> start_transfer(s, p, j, keep)
        :: else
        fi
    }
    keep = 0
}

/* ---- Transfers that are waited for: nothing unfinished is in their way any more ---- */

inline copy_now(p, range, prefer)
{
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) ->
            find_source(p, range, g, prefer);
            if
            :: o == p ->
                content[at(block[p], g)] = newest[g];
                depends(block[p], g, 0)
            :: o != p && o != NO_SLOT ->
                content[at(block[p], g)] = content[at(block[o], g)];
                depends(block[p], g, origins(block[o], g))
            :: else
            fi
        :: else
        fi
    }
}

/* set: what such a call has to wait for first. */
inline find_blockers(p, range, writing, prefer)
{
    set = 0;
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) ->
            find_source(p, range, g, prefer);
            add_unfinished(p, bit(g), writing || !has(seen(range, g), p));
            if
            :: o != NO_SLOT && o != p -> add_unfinished(o, bit(g), false)
            :: else
            fi
        :: else
        fi
    }
}

/* ---- The mark ---- */

inline mark(p, range, mode)
{
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) && writes(mode) ->
            new_version(g);
            valid[g] = bit(p);
            if
            :: mode == WRITE -> depends(block[p], g, 0)
            :: else
            fi
        :: has(range, g) && !writes(mode) -> valid[g] = seen(range, g) | bit(p)
        :: else
        fi
    }
    if
    :: writes(mode) -> overwritten(range, (mode == WRITE -> NO_SLOT : p))
    :: else
    fi;
#ifdef VIEW_OWN_FLAGS
    view_valid = ((range) == VIEW -> valid[1] : view_valid);
#endif
    keep = 0
}

/* ---- Leases ---- */

/* l: LEASES when all are open. */
inline find_lease()
{
    l = LEASES;
    for (x : 0 .. LEASES - 1) {
        l = (!lease[x].open && l == LEASES -> x : l)
    }
}

/* Versions are what the holder will want to see, and what will be there afterwards. */
inline open_lease(n, p, range, m, s)
{
    lease[n].open = true;
    lease[n].place = p;
    lease[n].mode = m;
    lease[n].segs = range;
    lease[n].stream = s;
    lease[n].begun = works;
    lease[n].told = told;
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) && m != WRITE -> lease[n].want[g] = newest[g]
        :: else
        fi
    }
    mark(p, range, m);
    for (g : 0 .. SEGS - 1) {
        if
        :: has(range, g) && writes(m) -> lease[n].make[g] = newest[g]
        :: else
        fi
    }
}

inline close_lease(n)
{
    lease[n].open = false;
    lease[n].place = 0;
    lease[n].mode = 0;
    lease[n].segs = 0;
    lease[n].stream = 0;
    lease[n].begun = 0;
    lease[n].told = 0;
    for (x : 0 .. SEGS - 1) {
        lease[n].want[x] = 0;
        lease[n].make[x] = 0
    }
}

inline launch(n)
{
    o = lease[n].stream;
    set = lease[n].segs;
    i = (writes(lease[n].mode) -> NO_SLOT : lease[n].place);
    j = (writes(lease[n].mode) -> lease[n].place : NO_SLOT);
    put(o, set, i, j);
    set = 0;
    work[k].source = block[lease[n].place];
    work[k].begun = lease[n].begun;
    work[k].told = lease[n].told;
    for (g : 0 .. SEGS - 1) {
        work[k].want[g] = lease[n].want[g];
        work[k].make[g] = lease[n].make[g]
    }
    drop_stood_for(k)
}

/* begin() at a device: stream-ordered. */
inline begin(p, m, range, s, prefer)
{
    ready = true;
    count = 0;
    reap();
    find_lease();
    ready = !failure && l < LEASES;
    check_leases(range, writes(m));
    if
    :: m != WRITE -> check_lost(p, range); count_sources(p, range, prefer)
    :: else -> count = 0
    fi;
    check_room(1);
    if
    :: ready -> ensure_memory(p)
    :: else
    fi;
    if
    :: ready ->
        if
        :: m != WRITE -> bring_in(s, p, range, prefer)
        :: else
        fi;
        order(s, p, range, writes(m));
        open_lease(l, p, range, m, s);
#ifdef LAUNCH_AT_ONCE
        launch(l);
        work[k].listed = false;
        work[k].lease = l + 1;
#endif
    :: else
    fi;
    count = 0;
    tidy()
}

/* end() of a lease at a device: an event is recorded. */
inline end_on_stream(n)
{
#ifdef LAUNCH_AT_ONCE
    for (x : 0 .. OPS - 1) {
        if
        :: work[x].lease == n + 1 -> work[x].lease = 0; work[x].listed = (work[x].is == QUEUED)
        :: else
        fi
    }
#else
    launch(n);
#endif
    close_lease(n);
    purge();
    tidy()
}

/* end() at the host: until then the holder reads, or has written. */
inline end_on_host(n)
{
    for (g : 0 .. SEGS - 1) {
        if
        :: lease[n].want[g] != 0 ->
            assert(content[at(block[HOST], g)] == lease[n].want[g] || lease[n].told < failures)
        :: else
        fi;
        if
        :: lease[n].make[g] != 0 -> content[at(block[HOST], g)] = lease[n].make[g]
        :: else
        fi
    }
    close_lease(n);
    tidy()
}

/* ---- The host: calls that wait ---- */

/* A plain call, or begin() at the host (leased). ready: it was done; set: what it waits for. */
inline use_host(m, range, prefer, leased)
{
    find_blockers(HOST, range, writes(m), (m == WRITE -> HOST : prefer));
#ifdef NO_WAIT
    set = 0;
#endif
    ready = (set == 0);
    if
    :: ready ->
        reap();
        find_lease();
        ready = !failure && (!(leased) || l < LEASES);
        check_leases(range, writes(m));
        if
        :: m != WRITE -> check_lost(HOST, range)
        :: else
        fi
    :: else
    fi;
    if
    :: ready -> ensure_memory(HOST)
    :: else
    fi;
    if
    :: ready -> use_host_now(m, range, prefer, leased)
    :: else
    fi;
    tidy()
}

inline use_host_now(m, range, prefer, leased)
{
    if
    :: m != WRITE -> copy_now(HOST, range, prefer); look_at_host(range)
    :: else
    fi;
    if
    :: leased -> open_lease(l, HOST, range, m, NO_STREAM)
    :: !(leased) ->
        mark(HOST, range, m);
        for (g : 0 .. SEGS - 1) {
            if
            :: has(range, g) && writes(m) -> content[at(block[HOST], g)] = newest[g]
            :: else
            fi
        }
    :: else
    fi
}

/* The caller reads what it was given: no excuse, for all failures that matter have been told. */
inline look_at_host(range)
{
    for (g : 0 .. SEGS - 1) {
        assert(!has(range, g) || content[at(block[HOST], g)] == newest[g])
    }
}

/* ---- Prefetches and pushes ---- */

inline prefetch(p, range, s, prefer)
{
    count = 0;
    reap();
    ready = !failure;
    check_leases(range, false);
    check_lost(p, range);
    count_sources(p, range, prefer);
    check_room(0);
    find_fresh(p, range);
    if
    :: ready -> ensure_memory(p)
    :: else
    fi;
    if
    :: ready ->
        bring_in(s, p, range, prefer);
        if
        :: p != HOST -> order(s, p, range, false)
        :: else
        fi;
        mark(p, range, READ)
    :: else
    fi;
    count = 0;
    tidy()
}

/* Fresh bytes are no matter of prefetching to the host: zeroing them there is waited for. */
inline find_fresh(p, range)
{
    for (x : 0 .. SEGS - 1) {
        ready = ready && !(p == HOST && has(range, x) && seen(range, x) == 0)
    }
}

/* ---- drop ---- */

#define alone(seg, p) (valid[seg] == bit(p))

/* Where bytes go that are nowhere else. */
#define saved_at(p) ((p) != HOST -> HOST : \
    (block[1] == NO_BLOCK && block[PLACES - 1] != NO_BLOCK -> PLACES - 1 : 1))

/* set: what has to end first: what writes here; and transfers from here: if they fail, this is
 * where the bytes are. */
inline find_blockers_of_drop(p)
{
    set = 0;
    add_unfinished(p, WHOLE, adopted[block[p]]);
    for (x : 0 .. OPS - 1) {
#ifndef DROP_UNARRIVED
        if
        :: work[x].is == QUEUED && work[x].listed && work[x].regions != 0 &&
           work[x].reads == p -> set = set | bit(x)
        :: else
        fi
#else
        skip
#endif
    }
    if
    :: (alone(0, p) || alone(1, p)) -> o = saved_at(p); add_unfinished(o, WHOLE, true)
    :: else
    fi
}

inline save(p)
{
    o = saved_at(p);
    ensure_memory(o);
    for (g : 0 .. SEGS - 1) {
        if
        :: ready && alone(g, p) ->
            content[at(block[o], g)] = content[at(block[p], g)];
            depends(block[o], g, origins(block[p], g));
            valid[g] = valid[g] | bit(o)
        :: else
        fi
    }
}

inline drop(p)
{
    ready = (block[p] != NO_BLOCK);
    set = 0;
    if
    :: ready -> find_blockers_of_drop(p); ready = (set == 0)
    :: else
    fi;
    if
    :: ready -> reap(); ready = !failure
    :: else
    fi;
    for (x : 0 .. LEASES - 1) {
        ready = ready && !(lease[x].open && lease[x].place == p);
#ifndef SAVE_UNDER_LEASE
        /* After a failure what a lease writes elsewhere may be only here. */
        ready = ready && !(lease[x].open && writes(lease[x].mode) &&
                           ((has(lease[x].segs, 0) && alone(0, p)) ||
                            (has(lease[x].segs, 1) && alone(1, p))))
#endif
    }
    if
    :: ready && (alone(0, p) || alone(1, p)) -> save(p)
    :: else
    fi;
    if
    :: ready ->
        for (g : 0 .. SEGS - 1) {
            valid[g] = valid[g] & ~bit(p)
        }
        zeroed = zeroed && p != HOST;
        retire(p);
        leave_slot(p);
        purge()
    :: else
    fi;
    tidy()
}

/* ---- adopt at the host: the user's block takes the place of what was there ---- */

inline adopt()
{
    set = 0;
    if
    :: block[HOST] != NO_BLOCK && adopted[block[HOST]] -> add_unfinished(HOST, WHOLE, true)
    :: else
    fi;
#ifdef NO_ADOPT_WAIT
    set = 0;
#endif
    ready = (set == 0);
    if
    :: ready ->
        reap();
        ready = !failure;
        check_leases(WHOLE, true);
        find_block(HOST);
        ready = ready && v != NO_BLOCK
    :: else
    fi;
    if
    :: ready ->
        i = v;
        if
        :: block[HOST] != NO_BLOCK ->
            if
            :: adopted[block[HOST]] -> y = block[HOST]; free_block(y)
            :: else -> retire(HOST)
            fi;
            leave_slot(HOST)
        :: else
        fi;
        block[HOST] = i;
        state[i] = IN_USE;
        adopted[i] = true;
        zeroed = false;
        mark(HOST, WHOLE, WRITE);
        content[at(i, 0)] = newest[0];
        content[at(i, 1)] = newest[1];
        purge()
    :: else
    fi;
    tidy()
}

/* ---- The end ---- */

/* All blocks go, with the work that uses them; no one waits, but for memory that is the user's. */
inline release()
{
    for (j : 0 .. PLACES - 1) {
        if
        :: block[j] != NO_BLOCK -> retire(j)
        :: else
        fi
    }
    for (j : 0 .. OPS - 1) {
        work[j].listed = false;
        work[j].regions = 0
    }
    purge();
    over = true
}

/* When all has ended and all failures have been told: every place that is marked holds the newest
 * bytes, and they are somewhere, but for what is fresh or was said to be lost. */
inline audit()
{
    reap();
    assert(!owed);
    for (g : 0 .. SEGS - 1) {
        for (j : 0 .. PLACES - 1) {
            assert(!(has(valid[g], j) && content[at(block[j], g)] != newest[g]))
        }
        assert(valid[g] != 0 || !zeroed || block[HOST] == NO_BLOCK ||
               content[at(block[HOST], g)] == newest[g]);
        assert(valid[g] != LOST || failures > 0)
    }
}
