// transposes: T[k][m] = A[m][k]
extern "C" __global__ void __launch_bounds__(256) tr32(const float*__restrict__ A,float*__restrict__ T,int R,int Cc){
  __shared__ float s[32][33]; int x=blockIdx.x*32,y=blockIdx.y*32,tx=threadIdx.x%32,ty=threadIdx.x/32;
  #pragma unroll
  for(int i=0;i<32;i+=8) s[ty+i][tx]=A[(size_t)(y+ty+i)*Cc+x+tx];
  __syncthreads();
  #pragma unroll
  for(int i=0;i<32;i+=8) T[(size_t)(x+ty+i)*R+y+tx]=s[tx][ty+i];
}
// 4x4 blocks in registers; no shared memory: each thread 4 rows x 4 k; a warp: WM4 x WK4 blocks
template<int KQ,int HINT> __device__ __forceinline__ void quad(const float*A,float*T,int R,int Cc){
  const int l=threadIdx.x%32,w=threadIdx.x/32; constexpr int MQ=32/KQ;
  const int m=(blockIdx.y*8+w)*MQ*4+(l%MQ)*4, k=blockIdx.x*KQ*4+(l/MQ)*4;
  float4 v[4];
  #pragma unroll
  for(int i=0;i<4;i++){ const float4*p=(const float4*)(A+(size_t)(m+i)*Cc+k); v[i]=HINT?__ldcs(p):*p; }
  float4 o[4]={{v[0].x,v[1].x,v[2].x,v[3].x},{v[0].y,v[1].y,v[2].y,v[3].y},{v[0].z,v[1].z,v[2].z,v[3].z},{v[0].w,v[1].w,v[2].w,v[3].w}};
  #pragma unroll
  for(int i=0;i<4;i++) *(float4*)(T+(size_t)(k+i)*R+m)=o[i];
}
extern "C" __global__ void __launch_bounds__(256) trq4(const float*__restrict__ A,float*__restrict__ T,int R,int Cc){ quad<4,0>(A,T,R,Cc); }
extern "C" __global__ void __launch_bounds__(256) trq4h(const float*__restrict__ A,float*__restrict__ T,int R,int Cc){ quad<4,1>(A,T,R,Cc); }
extern "C" __global__ void __launch_bounds__(256) trq8h(const float*__restrict__ A,float*__restrict__ T,int R,int Cc){ quad<8,1>(A,T,R,Cc); }
// 64 (m) x 64 (k) through shared memory, float4 both ways
template<int HINT> __device__ __forceinline__ void big(const float*A,float*T,int R,int Cc){
  __shared__ float s[64][65]; const int t=threadIdx.x, x=blockIdx.x*64,y=blockIdx.y*64;
  float4 v[4];
  #pragma unroll
  for(int i=0;i<4;i++){ const float4*p=(const float4*)(A+(size_t)(y+t/16+i*16)*Cc+x+t%16*4); v[i]=HINT?__ldcs(p):*p; }
  #pragma unroll
  for(int i=0;i<4;i++){ float*d=&s[t/16+i*16][t%16*4]; d[0]=v[i].x; d[1]=v[i].y; d[2]=v[i].z; d[3]=v[i].w; }
  __syncthreads();
  #pragma unroll
  for(int i=0;i<4;i++){ int k=t/16+i*16, m=t%16*4; *(float4*)(T+(size_t)(x+k)*R+y+m)=make_float4(s[m][k],s[m+1][k],s[m+2][k],s[m+3][k]); }
}
extern "C" __global__ void __launch_bounds__(256) tr64(const float*__restrict__ A,float*__restrict__ T,int R,int Cc){ big<0>(A,T,R,Cc); }
extern "C" __global__ void __launch_bounds__(256) tr64h(const float*__restrict__ A,float*__restrict__ T,int R,int Cc){ big<1>(A,T,R,Cc); }
